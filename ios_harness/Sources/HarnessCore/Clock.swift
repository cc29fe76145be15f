// SPDX-License-Identifier: Apache-2.0

import CHost

/// The clocks of a launch. All times of one launch are monotonic nanoseconds since it began.
public struct LaunchClock: Sendable {
  private let beganAt: Int64
  private let asleepBefore: Int64

  /// Starts the clock: this moment is 0.
  public init() {
    beganAt = chost_monotonic_ns()
    asleepBefore = chost_asleep_ns()
  }

  /// Nanoseconds since the launch began.
  public var nowNs: Int64 { chost_monotonic_ns() - beganAt }

  /// Seconds that the machine slept since the launch began.
  public var suspendedS: Double { Double(chost_asleep_ns() - asleepBefore) / 1e9 }

  /// Unix time in seconds; it may jump when the phone sets its clock.
  public var wallTimeS: Double { chost_wall_time_s() }

  /// Blocks the calling thread until a time of this launch; returns at once when it has passed.
  public func sleep(untilNs deadlineNs: Int64) {
    if deadlineNs > nowNs { chost_sleep_until_ns(beganAt + deadlineNs) }
  }
}
