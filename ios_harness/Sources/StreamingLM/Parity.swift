// SPDX-License-Identifier: Apache-2.0

/// A token id with its logit.
public struct Candidate: Sendable, Equatable {
  /// The id.
  public let token: Token
  /// Its logit.
  public let logit: Float

  /// - Parameters:
  ///   - token: The id.
  ///   - logit: Its logit.
  public init(token: Token, logit: Float) {
    self.token = token
    self.logit = logit
  }
}

/// How far the logits of a state set in use are from those of one that was fed the same ids anew (docs/protocol.md,
/// 3.2).
///
/// Strict equality of tokens is no gate: fp16 on the Neural Engine keeps the first id among the first three and rarely
/// more.
public struct Parity: Sendable, Equatable {
  /// Largest absolute difference of two logits of one id.
  public let maxAbs: Double
  /// Whether both put the same id first.
  public let isTop1Equal: Bool
  /// Whether the first id in use is among the audit's first three.
  public let isTop3Contained: Bool
  /// Share of common ids among the first five, 0 to 1.
  public let top5Overlap: Double

  private static let widest = 5

  /// Compares all logits.
  ///
  /// - Parameters:
  ///   - used: Of the state set in use, by id.
  ///   - audited: Of the audit's, by id; as many.
  public init(used: [Float], audited: [Float]) {
    var difference: Float = 0
    for (left, right) in zip(used, audited) { difference = max(difference, abs(left - right)) }
    self.init(
      maxAbs: Double(difference), used: Self.best(of: used), audited: Self.best(of: audited))
  }

  /// Compares lists of candidates, best first. An id that only one of them has counts with a logit of 0 in the other.
  ///
  /// - Parameters:
  ///   - used: Of the state set in use.
  ///   - audited: Of the audit's.
  public init(used: [Candidate], audited: [Candidate]) {
    var logits: [Token: (used: Float, audited: Float)] = [:]
    for candidate in used { logits[candidate.token, default: (0, 0)].used = candidate.logit }
    for candidate in audited { logits[candidate.token, default: (0, 0)].audited = candidate.logit }
    let difference = logits.values.map { abs($0.used - $0.audited) }.max() ?? 0
    self.init(
      maxAbs: Double(difference), used: used.prefix(Self.widest).map(\.token),
      audited: audited.prefix(Self.widest).map(\.token))
  }

  private init(maxAbs: Double, used: [Token], audited: [Token]) {
    self.maxAbs = maxAbs
    isTop1Equal = used.first == audited.first
    isTop3Contained = used.first.map(audited.prefix(3).contains) ?? false
    let common = Set(used).intersection(audited).count
    top5Overlap = Double(common) / Double(max(1, min(Self.widest, used.count)))
  }

  /// The ids of the largest logits, best first; the lowest id first on a tie (contract R11).
  private static func best(of logits: [Float]) -> [Token] {
    var best: [Int] = []
    for index in logits.indices {
      let place = best.firstIndex { logits[$0] < logits[index] } ?? best.count
      if place < widest { best.insert(index, at: place) }
      if best.count > widest { best.removeLast() }
    }
    return best.map(Token.init)
  }
}
