// SPDX-License-Identifier: Apache-2.0

/// Reads one JSON document (RFC 8259) from bytes that nobody vouches for.
public struct JSONReader {
  /// Deeper nesting is refused, so that a hostile line cannot exhaust the stack.
  public static let deepestNesting = 32

  private let bytes: [UInt8]
  private var at = 0
  private var depth = 0

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Reads a document.
  ///
  /// - Parameter bytes: UTF-8; white space around the value is allowed, anything else is not.
  /// - Returns: The document's value.
  /// - Throws: `JSONError.malformed` or `JSONError.tooDeep`, with the byte's offset.
  public static func read(_ bytes: some Sequence<UInt8>) throws(JSONError) -> JSONValue {
    var reader = JSONReader(Array(bytes))
    let value = try reader.value()
    reader.skipSpace()
    if reader.at != reader.bytes.count { throw reader.malformed }
    return value
  }

  private var malformed: JSONError { .malformed(offset: at) }

  private var current: UInt8? { at < bytes.count ? bytes[at] : nil }

  private mutating func skipSpace() {
    while let byte = current, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { at += 1 }
  }

  private mutating func take(_ byte: Character) -> Bool {
    skipSpace()
    guard current == byte.asciiValue else { return false }
    at += 1
    return true
  }

  private mutating func value() throws(JSONError) -> JSONValue {
    skipSpace()
    switch current {
    case UInt8(ascii: "{"): return try nested { (reader) throws(JSONError) in try reader.object() }
    case UInt8(ascii: "["): return try nested { (reader) throws(JSONError) in try reader.array() }
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return try number()
    }
  }

  private mutating func nested(
    _ body: (inout JSONReader) throws(JSONError) -> JSONValue
  ) throws(JSONError) -> JSONValue {
    depth += 1
    if depth > Self.deepestNesting { throw .tooDeep(offset: at) }
    defer { depth -= 1 }
    at += 1
    return try body(&self)
  }

  private mutating func object() throws(JSONError) -> JSONValue {
    var members: [String: JSONValue] = [:]
    if take("}") { return .object(members) }
    repeat {
      skipSpace()
      guard current == UInt8(ascii: "\"") else { throw malformed }
      let key = try string()
      guard take(":") else { throw malformed }
      members[key] = try value()
    } while take(",")
    guard take("}") else { throw malformed }
    return .object(members)
  }

  private mutating func array() throws(JSONError) -> JSONValue {
    var items: [JSONValue] = []
    if take("]") { return .array(items) }
    repeat { items.append(try value()) } while take(",")
    guard take("]") else { throw malformed }
    return .array(items)
  }

  private mutating func word(_ text: String, _ value: JSONValue) throws(JSONError) -> JSONValue {
    guard bytes[at...].starts(with: text.utf8) else { throw malformed }
    at += text.utf8.count
    return value
  }

  private mutating func number() throws(JSONError) -> JSONValue {
    let start = at
    if current == UInt8(ascii: "-") { at += 1 }
    let firstDigit = at
    try digits()
    if bytes[firstDigit] == UInt8(ascii: "0"), at - firstDigit > 1 { throw malformed }
    let isWhole = try !fractionAndExponent()
    let text = String(decoding: bytes[start..<at], as: UTF8.self)
    if isWhole, let integer = Int64(text) { return .integer(integer) }
    if isWhole, let unsigned = UInt64(text) { return .unsigned(unsigned) }
    guard let double = Double(text), double.isFinite else { throw malformed }
    return .double(double)
  }

  private mutating func digits() throws(JSONError) {
    let start = at
    while let byte = current, (0x30...0x39).contains(byte) { at += 1 }
    if at == start { throw malformed }
  }

  /// Returns whether there was a fraction or an exponent.
  private mutating func fractionAndExponent() throws(JSONError) -> Bool {
    let start = at
    if current == UInt8(ascii: ".") {
      at += 1
      try digits()
    }
    if let byte = current, byte | 0x20 == UInt8(ascii: "e") {
      at += 1
      if let sign = current, [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(sign) { at += 1 }
      try digits()
    }
    return at > start
  }

  private mutating func string() throws(JSONError) -> String {
    at += 1
    var text: [UInt8] = []
    while let byte = current, byte >= 0x20 {
      at += 1
      switch byte {
      case UInt8(ascii: "\""):
        guard let string = String(validating: text, as: UTF8.self) else { throw malformed }
        return string
      case UInt8(ascii: "\\"): try escape(into: &text)
      default: text.append(byte)
      }
    }
    throw malformed
  }

  private mutating func escape(into text: inout [UInt8]) throws(JSONError) {
    guard let byte = current else { throw malformed }
    at += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"): text.append(contentsOf: String(try escapedScalar()).utf8)
    default: throw malformed
    }
  }

  /// A scalar from one escape, or from two that are surrogates.
  private mutating func escapedScalar() throws(JSONError) -> Character {
    let high = try codeUnit()
    var scalar = UInt32(high)
    if (0xD800..<0xDC00).contains(high) {
      guard bytes[at...].starts(with: #"\u"#.utf8) else { throw malformed }
      at += 2
      let low = try codeUnit()
      guard (0xDC00..<0xE000).contains(low) else { throw malformed }
      scalar = 0x10000 + (UInt32(high) - 0xD800) << 10 + (UInt32(low) - 0xDC00)
    }
    guard let valid = Unicode.Scalar(scalar) else { throw malformed }
    return Character(valid)
  }

  private mutating func codeUnit() throws(JSONError) -> UInt16 {
    guard at + 4 <= bytes.count else { throw malformed }
    var unit: UInt16 = 0
    for byte in bytes[at..<at + 4] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw malformed }
      unit = unit << 4 | UInt16(digit)
    }
    at += 4
    return unit
  }
}
