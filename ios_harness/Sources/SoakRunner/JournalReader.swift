// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore

/// Reads whole records back from a journal that is being written.
final class JournalReader {
  let journal: Journal
  private let descriptor: Int32
  /// The record whose bytes are not given as they stand; nil for a sound reader.
  private let altered: Int?

  /// Bytes read at once; a record has at most 64 KiB.
  private static let pieceBytes = 128 * 1024

  /// - Parameters:
  ///   - journal: What is read.
  ///   - altered: The record whose bytes are not given as they stand: a fault on purpose.
  /// - Throws: `SystemError` when the file cannot be opened.
  init(_ journal: Journal, altering altered: Int? = nil) throws(SystemError) {
    self.journal = journal
    self.altered = altered
    descriptor = try SystemError.check(chost_open_read(journal.path), "open \(journal.path)")
  }

  deinit { chost_close(descriptor) }

  /// Whole lines from a byte of the file on; empty when there are none yet.
  func lines(from offset: Int) -> ArraySlice<UInt8> {
    let count = min(Self.pieceBytes, journal.committedBytes - offset)
    if count <= 0 { return [] }
    var bytes = [UInt8](repeating: 0, count: count)
    let read = chost_read_at(descriptor, &bytes, Int64(count), Int64(offset))
    let whole = bytes.prefix(max(0, Int(read)))
    guard let lastEnd = whole.lastIndex(of: 0x0A) else { return [] }
    var lines = whole.prefix(through: lastEnd)
    if let altered { Self.alter(&lines, sequence: altered) }
    return lines
  }

  /// Changes the last digit of a record's time.
  private static func alter(_ lines: inout ArraySlice<UInt8>, sequence: Int) {
    guard let number = lines.firstRange(of: Array("\"seq\":\(sequence),\"t_ns\":".utf8)),
      let end = lines[number.upperBound...].firstIndex(of: UInt8(ascii: ","))
    else { return }
    let digit = lines[end - 1] - UInt8(ascii: "0")
    lines[end - 1] = UInt8(ascii: "0") + (digit + 1) % 10
  }

  /// Where record `sequence + 1` begins, or will begin; nil when there is no record `sequence`.
  func offset(after sequence: Int) -> Int? {
    var offset = 0
    var left = sequence
    while left > 0 {
      let piece = lines(from: offset)
      if piece.isEmpty { return nil }
      for byte in piece {
        offset += 1
        if byte == 0x0A { left -= 1 }
        if left == 0 { break }
      }
    }
    return offset
  }
}
