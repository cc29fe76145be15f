// SPDX-License-Identifier: Apache-2.0

import CHost

/// Lines to the standard descriptors; a reader that has gone is no error.
enum Console {
  static func output(_ line: some Sequence<UInt8>) { write(Array(line), to: 1) }

  static func error(_ line: String) { write(Array("harness-host: \(line)".utf8), to: 2) }

  private static func write(_ line: [UInt8], to descriptor: Int32) {
    let bytes = line + [0x0A]
    _ = chost_write_all(descriptor, bytes, Int64(bytes.count))
  }
}
