// SPDX-License-Identifier: Apache-2.0

import StreamingLM

/// Public functions that tie phone and host to the same numbers without sending them.
public enum Mixing {
  private static let probeCount: UInt64 = 8

  /// SplitMix64's output function.
  ///
  /// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
  public static func mix(_ value: UInt64) -> UInt64 {
    var mixed = value &+ 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// The token that a witness samples (contract, Proof of context).
  ///
  /// - Parameters:
  ///   - rowCount: Rows of the state set, at least 1.
  ///   - vocabulary: Range and end of the ids.
  ///   - nonce: The host's number for this launch.
  ///   - idAtRow: Reads the id back that stands in a row.
  /// - Returns: The end token, or an id from `firstID` up.
  public static func witnessToken(
    rowCount: Int, vocabulary: WitnessVocabulary, nonce: UInt64, idAtRow: (Int) -> Token
  ) -> Token {
    vocabulary.token(from: witnessDigest(rowCount: rowCount, nonce: nonce, idAtRow: idAtRow))
  }

  /// What a witness makes of the ids in its rows.
  ///
  /// - Parameters:
  ///   - rowCount: Rows of the state set, at least 1.
  ///   - nonce: The host's number for this launch.
  ///   - idAtRow: Reads the id back that stands in a row.
  /// - Returns: `a` of the contract.
  public static func witnessDigest(
    rowCount: Int, nonce: UInt64, idAtRow: (Int) -> Token
  ) -> UInt64 {
    let count = UInt64(rowCount)
    var mixed = nonce
    for probe in 0..<probeCount {
      let row = mix(nonce ^ count << 8 ^ probe) % count
      let id = UInt64(UInt32(bitPattern: idAtRow(Int(row))))
      mixed = mix(mixed ^ id ^ row << 32)
    }
    return mixed
  }
}

/// The ids a witness samples from.
public struct WitnessVocabulary: Sendable, Equatable {
  /// Ids lie under this one.
  public let size: Int
  /// The lowest id that is no special token.
  public let firstID: Token
  /// The end token.
  public let endID: Token
  /// E of the contract: one sample in so many is the end token; 0 for never.
  public let endEvery: UInt64

  /// - Parameters:
  ///   - size: Over `firstID`.
  ///   - firstID: The lowest id that is no special token.
  ///   - endID: The end token.
  ///   - endEvery: One sample in so many is the end token; 0 for never.
  public init(size: Int, firstID: Token, endID: Token, endEvery: UInt64) {
    self.size = size
    self.firstID = firstID
    self.endID = endID
    self.endEvery = endEvery
  }

  func token(from mixed: UInt64) -> Token {
    endEvery > 0 && mixed % endEvery == 0 ? endID : id(from: mixed)
  }

  /// The logits of a witness: eight candidates, best first (docs/protocol.md, 3.2).
  func candidates(from mixed: UInt64) -> [Candidate] {
    (0..<UInt64(Self.candidateCount)).map { place in
      Candidate(
        token: place == 0 ? token(from: mixed) : id(from: Mixing.mix(mixed ^ place)),
        logit: Float(Self.candidateCount) - Float(place))
    }
  }

  private static let candidateCount = 8

  private func id(from mixed: UInt64) -> Token {
    firstID + Token(mixed % UInt64(size - Int(firstID)))
  }
}
