// SPDX-License-Identifier: Apache-2.0

import CHost

/// The variables of a process.
public struct Environment: Sendable {
  private let variables: [String: String]

  /// - Parameter variables: By name.
  public init(_ variables: [String: String]) { self.variables = variables }

  /// The variables of this process, of the given names.
  public static func ofProcess(names: [String]) -> Environment {
    var variables: [String: String] = [:]
    for name in names {
      if let value = chost_environment(name) { variables[name] = String(cString: value) }
    }
    return Environment(variables)
  }

  /// A variable that is set and not empty.
  public subscript(name: String) -> String? {
    variables[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// A variable that is a positive whole number.
  ///
  /// - Parameter name: Of the variable.
  /// - Returns: nil when it is not set.
  /// - Throws: `EnvironmentError` when it is anything else.
  public func count(_ name: String) throws(EnvironmentError) -> Int? {
    guard let text = self[name] else { return nil }
    guard let count = Int(text), count > 0 else {
      throw EnvironmentError(name: name, expected: "a positive whole number")
    }
    return count
  }

  /// A variable that is a Unix time in seconds.
  ///
  /// - Parameter name: Of the variable.
  /// - Returns: nil when it is not set.
  /// - Throws: `EnvironmentError` when it is anything else.
  public func time(_ name: String) throws(EnvironmentError) -> Double? {
    guard let text = self[name] else { return nil }
    guard let time = Double(text), time.isFinite, time >= 0 else {
      throw EnvironmentError(name: name, expected: "a time in seconds")
    }
    return time
  }
}

/// The environment of the launch is not usable.
public struct EnvironmentError: Error, Equatable, CustomStringConvertible {
  /// The variable.
  public let name: String
  /// What it should be.
  public let expected: String

  /// - Parameters:
  ///   - name: The variable.
  ///   - expected: What it should be.
  public init(name: String, expected: String) {
    self.name = name
    self.expected = expected
  }

  /// One line for a person.
  public var description: String { "\(name): expected \(expected)" }
}
