// SPDX-License-Identifier: Apache-2.0

/// A JSON document as values.
///
/// Integers keep all 64 bits, signed or unsigned: seeds and nonces do not survive a `Double`.
public enum JSONValue: Sendable, Equatable {
  /// `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// A number without fraction or exponent that fits 64 signed bits.
  case integer(Int64)
  /// A number without fraction or exponent over `Int64.max`.
  case unsigned(UInt64)
  /// Any other number.
  case double(Double)
  /// A string.
  case string(String)
  /// A list.
  case array([JSONValue])
  /// An object; of a key that stands twice the last value counts.
  case object([String: JSONValue])

  /// The value as a 64-bit signed integer, if it is a whole number that fits.
  public var asInteger: Int? {
    if case .integer(let value) = self { return Int(value) }
    return nil
  }

  /// The value as a 64-bit unsigned integer, if it is a whole number that fits.
  public var asUnsigned: UInt64? {
    switch self {
    case .integer(let value): UInt64(exactly: value)
    case .unsigned(let value): value
    default: nil
    }
  }

  /// The value as a floating-point number, if it is a number.
  public var asDouble: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .double(let value): value
    default: nil
    }
  }

  /// The value as a string, if it is one.
  public var asString: String? {
    if case .string(let value) = self { return value }
    return nil
  }

  /// The value as a Boolean, if it is one.
  public var asBool: Bool? {
    if case .bool(let value) = self { return value }
    return nil
  }

  /// The value as a list, if it is one.
  public var asArray: [JSONValue]? {
    if case .array(let value) = self { return value }
    return nil
  }

  /// The value as an object, if it is one.
  public var asObject: [String: JSONValue]? {
    if case .object(let value) = self { return value }
    return nil
  }
}

/// Why bytes are not the JSON that was expected.
public enum JSONError: Error, Equatable, CustomStringConvertible {
  /// The bytes are not JSON.
  case malformed(offset: Int)
  /// Lists and objects are nested deeper than the reader follows.
  case tooDeep(offset: Int)
  /// A field is missing or is not what it should be.
  case field(path: String, expected: String)

  /// One line for a person.
  public var description: String {
    switch self {
    case .malformed(let offset): "not JSON at byte \(offset)"
    case .tooDeep(let offset): "nested too deeply at byte \(offset)"
    case .field(let path, let expected): "\(path): expected \(expected)"
    }
  }
}
