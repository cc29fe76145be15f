// SPDX-License-Identifier: Apache-2.0

import CHost

/// A call to the operating system that failed.
public struct SystemError: Error, Equatable, CustomStringConvertible {
  /// What was attempted, with its path or address.
  public let attempt: String
  /// The positive `errno` value.
  public let code: Int32

  /// - Parameters:
  ///   - attempt: What was attempted, with its path or address.
  ///   - code: The positive `errno` value.
  public init(_ attempt: String, code: Int32) {
    self.attempt = attempt
    self.code = code
  }

  /// `attempt: reason` on one line.
  public var description: String { "\(attempt): \(String(cString: chost_error_text(code)))" }

  /// Passes a result of `CHost` through, or throws the error it stands for.
  ///
  /// - Parameters:
  ///   - result: A value of at least 0, or `-errno`.
  ///   - attempt: What was attempted, for the error.
  /// - Returns: `result`.
  /// - Throws: `SystemError` when `result` is negative.
  @discardableResult
  public static func check<Value: FixedWidthInteger & SignedInteger>(
    _ result: Value, _ attempt: @autoclosure () -> String
  ) throws(SystemError) -> Value {
    if result < 0 { throw SystemError(attempt(), code: Int32(truncatingIfNeeded: -result)) }
    return result
  }
}
