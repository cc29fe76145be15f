// SPDX-License-Identifier: Apache-2.0

/// Writes one JSON object as one line into a reused buffer: in steady state nothing is allocated.
///
/// Members keep the order in which they are written. Names are literals and are not escaped.
public struct LineBuffer: Sendable {
  /// The line so far, UTF-8.
  public private(set) var bytes: [UInt8] = []
  private var needsComma = false

  /// - Parameter capacity: Bytes reserved from the start.
  public init(capacity: Int = 1024) { bytes.reserveCapacity(capacity) }

  /// Forgets the last line and opens an object.
  public mutating func begin() {
    bytes.removeAll(keepingCapacity: true)
    open("{")
  }

  /// Closes the object and ends the line.
  public mutating func end() {
    close("}")
    bytes.append(0x0A)
  }

  /// Writes a whole number.
  @inlinable
  public mutating func field(_ name: StaticString, _ value: some FixedWidthInteger) {
    key(name)
    append(value)
  }

  /// Writes a whole number or `null`.
  @inlinable
  public mutating func field(_ name: StaticString, _ value: (some FixedWidthInteger)?) {
    if let value { field(name, value) } else { null(name) }
  }

  /// Writes a number; one that JSON cannot express becomes `null`.
  public mutating func field(_ name: StaticString, _ value: Double) {
    key(name)
    append(value)
  }

  /// Writes a number or `null`.
  public mutating func field(_ name: StaticString, _ value: Double?) {
    if let value { field(name, value) } else { null(name) }
  }

  /// Writes `true` or `false`.
  public mutating func field(_ name: StaticString, _ value: Bool) {
    key(name)
    append(value)
  }

  /// Writes `true`, `false` or `null`.
  public mutating func field(_ name: StaticString, _ value: Bool?) {
    if let value { field(name, value) } else { null(name) }
  }

  /// Writes a string.
  public mutating func field(_ name: StaticString, _ value: String) {
    key(name)
    append(value)
  }

  /// Writes a string or `null`.
  public mutating func field(_ name: StaticString, _ value: String?) {
    if let value { field(name, value) } else { null(name) }
  }

  /// Writes the name of a case.
  @inlinable
  public mutating func field<Value: RawRepresentable>(_ name: StaticString, _ value: Value)
  where Value.RawValue == String {
    field(name, value.rawValue)
  }

  /// Writes a list of whole numbers.
  @inlinable
  public mutating func field(
    _ name: StaticString, _ values: some Sequence<some FixedWidthInteger>
  ) {
    key(name)
    open("[")
    for value in values {
      separate()
      append(value)
    }
    close("]")
  }

  /// Writes any value; members of objects are sorted by name.
  public mutating func field(_ name: StaticString, _ value: JSONValue) {
    key(name)
    append(value)
  }

  /// Writes an object.
  public mutating func object(_ name: StaticString, _ body: (inout LineBuffer) -> Void) {
    key(name)
    open("{")
    body(&self)
    close("}")
  }

  /// Writes `null`.
  public mutating func null(_ name: StaticString) {
    key(name)
    raw("null")
  }

  /// Writes one document on a line of its own.
  ///
  /// - Returns: UTF-8, without the end of the line; members of objects are sorted by name.
  public static func document(_ value: JSONValue) -> [UInt8] {
    var buffer = LineBuffer()
    buffer.append(value)
    return buffer.bytes
  }

  @usableFromInline
  mutating func key(_ name: StaticString) {
    separate()
    raw("\"")
    raw(name)
    raw("\":")
    needsComma = false
  }

  @usableFromInline
  mutating func separate() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  @usableFromInline
  mutating func open(_ bracket: StaticString) {
    raw(bracket)
    needsComma = false
  }

  @usableFromInline
  mutating func close(_ bracket: StaticString) {
    raw(bracket)
    needsComma = true
  }

  private mutating func raw(_ text: StaticString) {
    text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    needsComma = true
  }

  // Inlined where it is called: another module would call it through the witness table of its integer's type.
  @inlinable
  mutating func append(_ value: some FixedWidthInteger) {
    append(magnitude: UInt64(truncatingIfNeeded: value.magnitude), isNegative: value < 0)
  }

  @usableFromInline
  mutating func append(magnitude: UInt64, isNegative: Bool) {
    if isNegative { bytes.append(UInt8(ascii: "-")) }
    DecimalDigits.append(magnitude, to: &bytes)
    needsComma = true
  }

  private mutating func append(_ value: Double) {
    if value.isFinite { bytes.append(contentsOf: value.description.utf8) } else { raw("null") }
    needsComma = true
  }

  private mutating func append(_ value: Bool) { raw(value ? "true" : "false") }

  private mutating func append(_ value: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in value.utf8 { append(escaping: byte) }
    bytes.append(UInt8(ascii: "\""))
    needsComma = true
  }

  private mutating func append(escaping byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"):
      bytes.append(UInt8(ascii: "\\"))
      bytes.append(byte)
    case 0..<0x20:
      bytes.append(contentsOf: #"\u00"#.utf8)
      bytes.append(contentsOf: Hexadecimal.text(of: [byte]).utf8)
    default: bytes.append(byte)
    }
  }

  private mutating func append(_ value: JSONValue) {
    switch value {
    case .null: raw("null")
    case .bool(let value): append(value)
    case .integer(let value): append(value)
    case .unsigned(let value): append(value)
    case .double(let value): append(value)
    case .string(let value): append(value)
    case .array(let items): append(items)
    case .object(let members): append(members)
    }
  }

  private mutating func append(_ items: [JSONValue]) {
    open("[")
    for item in items {
      separate()
      append(item)
    }
    close("]")
  }

  private mutating func append(_ members: [String: JSONValue]) {
    open("{")
    for (name, value) in members.sorted(by: { $0.key < $1.key }) {
      separate()
      append(name)
      bytes.append(UInt8(ascii: ":"))
      append(value)
    }
    close("}")
  }
}

/// Decimal digits.
public enum DecimalDigits {
  private static let mostDigits = 20

  /// Appends the digits of a number without an allocation of its own.
  public static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: mostDigits) { digits in
      var (rest, start) = (number, mostDigits)
      repeat {
        start -= 1
        digits[start] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      } while rest > 0
      bytes.append(contentsOf: digits[start...])
    }
  }
}
