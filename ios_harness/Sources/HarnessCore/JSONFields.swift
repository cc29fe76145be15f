// SPDX-License-Identifier: Apache-2.0

/// The members of one JSON object, read with their types; an error names the path of the member.
public struct JSONFields: Sendable {
  private let members: [String: JSONValue]
  private let path: String

  /// - Parameters:
  ///   - value: Must be an object.
  ///   - path: Where it stands in the document, for errors; empty at the top.
  /// - Throws: `JSONError.field` when it is no object.
  public init(_ value: JSONValue?, at path: String = "") throws(JSONError) {
    guard let members = value?.asObject else {
      throw .field(path: path.isEmpty ? "document" : path, expected: "an object")
    }
    self.members = members
    self.path = path
  }

  /// The path of a member.
  public func path(of name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

  /// Whether there is a member, `null` or not.
  public func has(_ name: String) -> Bool { members[name] != nil }

  /// Whether a member is missing or `null`.
  public func isNull(_ name: String) -> Bool { members[name, default: .null] == .null }

  /// The raw member; `null` when it is missing.
  public subscript(name: String) -> JSONValue { members[name, default: .null] }

  /// A member that is an object.
  public func object(_ name: String) throws(JSONError) -> JSONFields {
    try JSONFields(self[name], at: path(of: name))
  }

  /// A member that is a list of objects.
  public func objects(_ name: String) throws(JSONError) -> [JSONFields] {
    var objects: [JSONFields] = []
    for (index, item) in try array(name).enumerated() {
      objects.append(try JSONFields(item, at: "\(path(of: name))[\(index)]"))
    }
    return objects
  }

  /// A member that is a list.
  public func array(_ name: String) throws(JSONError) -> [JSONValue] {
    try require(self[name].asArray, name, "a list")
  }

  /// A member that is a list of whole numbers of 32 bits.
  public func int32s(_ name: String) throws(JSONError) -> [Int32] {
    var numbers: [Int32] = []
    for item in try array(name) {
      let number = item.asInteger.flatMap { Int32(exactly: $0) }
      numbers.append(try require(number, name, "a list of 32-bit whole numbers"))
    }
    return numbers
  }

  /// A member that is a whole number inside a range.
  public func integer(
    _ name: String, in range: ClosedRange<Int> = 0...Int.max
  ) throws(JSONError) -> Int {
    let number = self[name].asInteger.flatMap { range.contains($0) ? $0 : nil }
    return try require(
      number, name, "a whole number of \(range.lowerBound) to \(range.upperBound)")
  }

  /// A member that is a whole number inside a range, `null` or missing.
  public func optionalInteger(
    _ name: String, in range: ClosedRange<Int> = 0...Int.max
  ) throws(JSONError) -> Int? {
    isNull(name) ? nil : try integer(name, in: range)
  }

  /// A member that is an unsigned whole number of 64 bits.
  public func unsigned(_ name: String) throws(JSONError) -> UInt64 {
    try require(self[name].asUnsigned, name, "a whole number of 64 bits")
  }

  /// A member that is a number over 0.
  public func positive(_ name: String) throws(JSONError) -> Double {
    let number = self[name].asDouble.flatMap { $0 > 0 ? $0 : nil }
    return try require(number, name, "a number over 0")
  }

  /// A member that is `true` or `false`.
  public func bool(_ name: String) throws(JSONError) -> Bool {
    try require(self[name].asBool, name, "true or false")
  }

  /// A member that is a string.
  public func string(_ name: String) throws(JSONError) -> String {
    try require(self[name].asString, name, "a string")
  }

  /// A member that is a string naming one case of a type.
  public func choice<Value: RawRepresentable & CaseIterable>(
    _ name: String, _ type: Value.Type
  ) throws(JSONError) -> Value where Value.RawValue == String {
    let names = type.allCases.map(\.rawValue).joined(separator: ", ")
    return try require(self[name].asString.flatMap(type.init), name, "one of \(names)")
  }

  private func require<Value>(
    _ value: Value?, _ name: String, _ expected: String
  ) throws(JSONError) -> Value {
    guard let value else { throw .field(path: path(of: name), expected: expected) }
    return value
  }
}
