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

/// Absolute deadlines of predictions, so that late steps do not add up.
struct Pacer {
  private let clock: LaunchClock
  private var dueNs: Int64

  init(clock: LaunchClock) {
    self.clock = clock
    dueNs = clock.nowNs
  }

  /// Returns when a prediction of `count` tokens at `tokensPerS` that begins now is due.
  mutating func schedule(count: Int, tokensPerS: Double) -> Int64 {
    let stepNs = Int64(Double(count) * 1e9 / tokensPerS)
    // A step makes up for lateness by half of its length at most: what is late by more was a pause, and no phone computes
    // faster after one.
    dueNs = max(dueNs, clock.nowNs - stepNs / 2) + stepNs
    return dueNs
  }
}
