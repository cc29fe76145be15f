// SPDX-License-Identifier: Apache-2.0

import CHost

/// How a token is picked from logits.
public struct SamplingSetting: Sendable, Equatable {
  /// What is drawn from.
  public struct Draw: Sendable, Equatable {
    /// Divides the logits; over 0.
    public let temperature: Double
    /// Only so many of the best ids; nil for all.
    public let topK: Int?
    /// Only the best ids whose probabilities reach this sum; nil for all.
    public let topP: Double?
    /// Of the random numbers; recorded, so that a run can be repeated.
    public let seed: UInt64

    /// - Parameters:
    ///   - temperature: Divides the logits; over 0.
    ///   - topK: Only so many of the best ids; nil for all.
    ///   - topP: Only the best ids whose probabilities reach this sum; nil for all.
    ///   - seed: Of the random numbers.
    public init(temperature: Double, topK: Int? = nil, topP: Double? = nil, seed: UInt64) {
      self.temperature = temperature
      self.topK = topK
      self.topP = topP
      self.seed = seed
    }
  }

  /// nil for greedy.
  public let draw: Draw?

  /// A word for records.
  public var mode: String { draw == nil ? "greedy" : "sampled" }

  /// The lowest id among the best.
  public static let greedy = SamplingSetting(draw: nil)

  /// - Parameter draw: What is drawn from; nil is greedy.
  public init(draw: Draw?) { self.draw = draw }
}

/// Picks tokens from logits, one call for each sample (contract R11).
public struct Sampler: Sendable {
  private let setting: SamplingSetting
  private var generator: SplitMix64

  /// - Parameter setting: How a token is picked.
  public init(_ setting: SamplingSetting = .greedy) {
    self.setting = setting
    generator = SplitMix64(seed: setting.draw?.seed ?? 0)
  }

  /// Picks a token.
  ///
  /// - Parameter logits: By id, at least one.
  /// - Returns: The id.
  /// - Throws: `EngineError.nonFinite` when a logit is not finite: one of them poisons every later step.
  public mutating func pick(_ logits: UnsafeBufferPointer<Float>) throws(EngineError) -> Token {
    let best = try Self.best(of: logits)
    guard let draw = setting.draw else { return Token(best) }
    return Self.pick(from: logits, draw, fraction: generator.nextFraction())
  }

  /// The lowest id with the largest logit.
  private static func best(of logits: UnsafeBufferPointer<Float>) throws(EngineError) -> Int {
    var best = 0
    for (index, logit) in logits.enumerated() {
      if !logit.isFinite { throw .nonFinite }
      if logit > logits[best] { best = index }
    }
    return best
  }

  private static func pick(
    from logits: UnsafeBufferPointer<Float>, _ draw: SamplingSetting.Draw, fraction: Double
  ) -> Token {
    // The lower id first on a tie, so that one seed gives one text on every machine.
    var order = logits.indices.sorted { (logits[$1], $0) < (logits[$0], $1) }
    if let topK = draw.topK { order.removeLast(max(0, order.count - max(1, topK))) }
    let highest = Double(logits[order[0]])
    var weights = order.map { chost_exp((Double(logits[$0]) - highest) / draw.temperature) }
    if let topP = draw.topP {
      weights.removeLast(weights.count - nucleus(of: weights, share: topP))
    }
    var left = fraction * weights.reduce(0, +)
    for (place, weight) in weights.enumerated() {
      left -= weight
      if left < 0 { return Token(order[place]) }
    }
    return Token(order[weights.count - 1])
  }

  /// The fewest best weights whose sum reaches a share of the whole.
  private static func nucleus(of weights: [Double], share: Double) -> Int {
    var left = share * weights.reduce(0, +)
    for (place, weight) in weights.enumerated() {
      left -= weight
      if left <= 0 { return place + 1 }
    }
    return weights.count
  }
}

/// SplitMix64: one 64-bit number after another from a seed.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
public struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// - Parameter seed: Equal seeds give equal numbers.
  public init(seed: UInt64) { state = seed }

  /// The next number.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// The next number as a fraction, 0 included and 1 not.
  public mutating func nextFraction() -> Double { Double(next() >> 11) * 0x1p-53 }
}
