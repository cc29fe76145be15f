// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// The host's 64-bit number for one launch, 16 hexadecimal digits in JSON.
struct Nonce: Sendable, Equatable {
  let value: UInt64
  let text: String

  /// - Throws: `JSONError.field` when the member `nonce` is not 16 hexadecimal digits.
  init(_ fields: JSONFields) throws(JSONError) {
    let text = try fields.string("nonce")
    guard text.utf8.count == 16, !text.hasPrefix("+"), let value = UInt64(text, radix: 16) else {
      throw .field(path: fields.path(of: "nonce"), expected: "16 hexadecimal digits")
    }
    self.value = value
    self.text = text.lowercased()
  }
}
