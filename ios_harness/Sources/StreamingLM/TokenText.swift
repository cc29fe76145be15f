// SPDX-License-Identifier: Apache-2.0

/// Turns ids into bytes of text. One id may give a part of a character.
public protocol TokenText: Sendable {
  /// UTF-8 bytes of one id, maybe an incomplete sequence.
  func bytes(of token: Token) -> [UInt8]
}

/// The text of models without a text table: every id counts as its decimal digits.
public struct DecimalText: TokenText {
  /// Text of decimal digits.
  public init() {}

  /// The digits of the id.
  public func bytes(of token: Token) -> [UInt8] { Array(token.description.utf8) }
}

/// Gathers bytes and gives whole characters out: a text view must never show half a character.
public struct UTF8Assembler: Sendable {
  private var held: [UInt8] = []

  /// Nothing held.
  public init() {}

  /// Takes bytes in.
  ///
  /// - Returns: The text that is complete; an incomplete sequence at the end is held back.
  public mutating func push(_ bytes: [UInt8]) -> String {
    held += bytes
    let whole = held.count - incompleteTail
    defer { held.removeFirst(whole) }
    return String(decoding: held[..<whole], as: UTF8.self)
  }

  /// Gives out what is held, with a replacement character for a sequence that never ended.
  public mutating func finish() -> String {
    defer { held.removeAll() }
    return String(decoding: held, as: UTF8.self)
  }

  /// Bytes at the end that begin a sequence and do not end it: 0 to 3.
  private var incompleteTail: Int {
    for length in 1...4 where length <= held.count {
      let byte = held[held.count - length]
      if byte & 0xC0 == 0x80 { continue }
      return Self.sequenceLength(from: byte) > length ? length : 0
    }
    return 0
  }

  private static func sequenceLength(from first: UInt8) -> Int {
    switch first {
    case 0xC0..<0xE0: 2
    case 0xE0..<0xF0: 3
    case 0xF0...: 4
    default: 1
    }
  }
}
