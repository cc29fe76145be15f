// SPDX-License-Identifier: Apache-2.0

/// Looks at the tokens of a turn for what no language does: one id without end, or a short cycle.
///
/// A model that was converted wrongly, or a cache that is read at a wrong place, often shows so before anything else
/// does. Keeps the last 16 tokens.
public struct OutputWatch: Sendable {
  /// What was found.
  public enum Finding: Sendable, Equatable, CustomStringConvertible {
    /// The same id, so many times in a row.
    case constant(Token, count: Int)
    /// A cycle of so many ids, for so many samples.
    case repetition(period: Int, count: Int)

    /// A word for records.
    public var code: String {
      switch self {
      case .constant: "constant_output"
      case .repetition: "repetition"
      }
    }

    /// One line for a person.
    public var description: String {
      switch self {
      case .constant(let token, let count): "id \(token) was sampled \(count) times in a row"
      case .repetition(let period, let count): "a cycle of \(period) ids lasts \(count) samples"
      }
    }
  }

  /// Equal ids in a row that are a finding.
  public static let longestRun = 64
  /// Longest cycle that is looked for.
  public static let longestPeriod = 16
  /// Samples of a cycle that are a finding.
  public static let longestCycle = 256

  private var recent: [Token] = []
  /// By period: samples in a row that equal the one a period before.
  private var matches = [Int](repeating: 0, count: longestPeriod + 1)
  private var isSaid = false

  /// Nothing seen yet.
  public init() { recent.reserveCapacity(Self.longestPeriod + 1) }

  /// Takes the next sample of the turn.
  ///
  /// - Returns: What it completes; at most one finding a turn.
  public mutating func observe(_ token: Token) -> Finding? {
    for period in 1...Self.longestPeriod {
      let isMatch = recent.count >= period && recent[recent.count - period] == token
      matches[period] = isMatch ? matches[period] + 1 : 0
    }
    recent.append(token)
    if recent.count > Self.longestPeriod { recent.removeFirst() }
    guard !isSaid, let finding = finding(token) else { return nil }
    isSaid = true
    return finding
  }

  private func finding(_ token: Token) -> Finding? {
    let run = matches[1] + 1
    if run >= Self.longestRun { return .constant(token, count: run) }
    guard let period = (2...Self.longestPeriod).first(where: isCycle) else { return nil }
    return .repetition(period: period, count: matches[period] + period)
  }

  /// A run of one id is a cycle of every period and is not meant.
  private func isCycle(_ period: Int) -> Bool {
    matches[1] == 0 && matches[period] + period >= Self.longestCycle
  }
}
