// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// Turns ids into bytes of text. One id may give a part of a character.
public protocol TokenText: Sendable {
  /// UTF-8 bytes of one id, maybe an incomplete sequence.
  func bytes(of token: Token) -> [UInt8]
  /// The same for the sample with a number within its turn, from 0, where the text depends on it.
  func bytes(of token: Token, at place: Int) -> [UInt8]
}

extension TokenText {
  /// The text depends on the id alone.
  public func bytes(of token: Token, at place: Int) -> [UInt8] { bytes(of: token) }
}

/// The text of models without a text table: every id counts as its decimal digits.
public struct DecimalText: TokenText {
  /// Text of decimal digits.
  public init() {}

  /// The digits of the id.
  public func bytes(of token: Token) -> [UInt8] {
    var bytes: [UInt8] = token < 0 ? [UInt8(ascii: "-")] : []
    DecimalDigits.append(UInt64(token.magnitude), to: &bytes)
    return bytes
  }
}

/// The text of a model that came with a table: the bytes of each id, by id.
public struct TableText: TokenText {
  private let table: [[UInt8]]

  /// - Parameter table: The bytes of each id, by id.
  public init(_ table: [[UInt8]]) { self.table = table }

  /// Reads `tokens.table`: `FTKT`, version 1, count and flags as little-endian u32, then `count + 1` offsets u32 into the
  /// bytes that follow. Fails when the bytes are no such table.
  ///
  /// - Parameter file: The file's bytes.
  public init?(file: [UInt8]) {
    let headBytes = 16
    guard file.count >= headBytes, file.starts(with: "FTKT".utf8) else { return nil }
    func word(_ offset: Int) -> Int {
      (0..<4).reduce(0) { $0 | Int(file[offset + $1]) << (8 * $1) }
    }
    let count = word(8)
    let begin = headBytes + 4 * (count + 1)
    guard word(4) == 1, begin <= file.count else { return nil }
    let offsets = (0...count).map { word(headBytes + 4 * $0) }
    guard offsets[0] == 0, offsets[count] == file.count - begin,
      zip(offsets, offsets.dropFirst()).allSatisfy({ $0 <= $1 })
    else { return nil }
    table = zip(offsets, offsets.dropFirst()).map { Array(file[begin + $0..<begin + $1]) }
  }

  /// The id's bytes; none for an id that the table does not hold.
  public func bytes(of token: Token) -> [UInt8] {
    table.indices.contains(Int(token)) ? table[Int(token)] : []
  }
}

/// Text without a table that still splits characters (docs/protocol.md, 3.1): two samples in a row share one character
/// of 2 to 4 bytes, so that whatever ids are sampled, the turn's text is valid and every second token ends inside a
/// character.
public struct PieceText: TokenText {
  private static let characters = ["é", "€", "😀"].map { Array($0.utf8) }

  /// Text of pieces.
  public init() {}

  /// The piece of a turn's first sample.
  public func bytes(of token: Token) -> [UInt8] { bytes(of: token, at: 0) }

  /// A letter for the id, and a part of the place's character.
  public func bytes(of token: Token, at place: Int) -> [UInt8] {
    let character = Self.characters[place / 2 % Self.characters.count]
    let letter = UInt8(ascii: "a") + UInt8(token % 26)
    return place % 2 == 0
      ? [letter] + character.dropLast() : character.suffix(1) + [letter]
  }
}

/// Gathers bytes and gives whole characters out: a text view must never show half a character.
public struct UTF8Assembler: Sendable {
  private var held: [UInt8] = []

  /// Nothing held.
  public init() {}

  /// Bytes held back, which end inside a character: 0 to 3.
  public var heldCount: Int { held.count }

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
