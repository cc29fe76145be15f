// SPDX-License-Identifier: Apache-2.0

/// A version 4 UUID in lower case, as records and journal names carry it.
public struct LaunchIdentifier: Sendable, Equatable, CustomStringConvertible {
  /// 36 characters: `xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx`.
  public let description: String

  /// Draws a new identifier from the system's random numbers.
  public init() {
    var generator = SystemRandomNumberGenerator()
    self.init(using: &generator)
  }

  /// Draws a new identifier, from chosen random numbers.
  public init(using generator: inout some RandomNumberGenerator) {
    var bytes = [UInt8](repeating: 0, count: 16)
    for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255, using: &generator) }
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += Hexadecimal.text(of: [byte])
    }
    description = text
  }
}

/// Bytes as lower-case hexadecimal digits.
public enum Hexadecimal {
  private static let digits = Array("0123456789abcdef".utf8)

  /// Two digits per byte.
  public static func text(of bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}
