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

  /// How far behind the set speed a step may be and still be made up for. More is a pause, and no phone computes faster
  /// after one.
  private static let longestCatchUpNs: Int64 = 100_000_000

  init(clock: LaunchClock) {
    self.clock = clock
    dueNs = clock.nowNs
  }

  /// Returns when a prediction of `count` tokens at `tokensPerS` that begins now is due.
  mutating func schedule(count: Int, tokensPerS: Double) -> Int64 {
    let nowNs = clock.nowNs
    let fromNs = nowNs - dueNs > Self.longestCatchUpNs ? nowNs : dueNs
    dueNs = fromNs + Int64(Double(count) * 1e9 / tokensPerS)
    return dueNs
  }
}
