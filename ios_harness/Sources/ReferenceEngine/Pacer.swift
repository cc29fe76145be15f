// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// The set speed of an engine.
public struct EngineSpeed: Sendable, Equatable {
  /// Tokens a second of a decode step.
  public let decodeTokensPerS: Double
  /// Tokens a second of a prefill chunk.
  public let prefillTokensPerS: Double

  /// - Parameters:
  ///   - decodeTokensPerS: Over 0.
  ///   - prefillTokensPerS: Over 0.
  public init(decodeTokensPerS: Double, prefillTokensPerS: Double) {
    self.decodeTokensPerS = decodeTokensPerS
    self.prefillTokensPerS = prefillTokensPerS
  }
}

/// Waits until absolute deadlines, so that late steps do not add up.
struct Pacer {
  private let clock: LaunchClock
  private var dueNs: Int64

  /// How far behind the set speed a step may be and still be made up for. More is a pause, not a late step.
  private static let longestCatchUpNs: Int64 = 100_000_000

  init(clock: LaunchClock) {
    self.clock = clock
    dueNs = clock.nowNs
  }

  /// Returns when `count` tokens at `tokensPerS` after the last deadline are due.
  mutating func wait(count: Int, tokensPerS: Double) {
    let stepNs = Int64(Double(count) * 1e9 / tokensPerS)
    dueNs = max(dueNs, clock.nowNs - stepNs - Self.longestCatchUpNs) + stepNs
    clock.sleep(untilNs: dueNs)
  }
}
