// SPDX-License-Identifier: Apache-2.0

import CHost
import StreamingLM

/// Anonymous memory that counts as dirty from the start and is given back at once.
///
/// By `mmap` and `munmap`: a freed `malloc` block does not lower dirty memory the second time, because glibc raises
/// its threshold and keeps it.
public final class MappedRegion {
  /// Bytes of the region, whole pages.
  public let byteCount: Int
  private let start: UnsafeMutableRawPointer

  /// What untouched memory is not: any byte but 0.
  private static let filler: UInt8 = 0xA5

  /// Maps memory and writes to every page of it.
  ///
  /// - Parameter byteCount: Rounded up to whole pages; at least one page.
  /// - Throws: `EngineError.memory` when the system gives none.
  public init(byteCount: Int) throws(EngineError) {
    let page = Int(chost_page_bytes())
    let whole = max(1, (byteCount + page - 1) / page) * page
    guard let start = chost_map(Int64(whole)) else { throw .memory(bytes: whole) }
    start.initializeMemory(as: UInt8.self, repeating: Self.filler, count: whole)
    self.start = start
    self.byteCount = whole
  }

  deinit { chost_unmap(start, Int64(byteCount)) }

  /// Writes a row that begins with an id in the first four bytes, little-endian; the rest is filled.
  ///
  /// - Parameters:
  ///   - id: The id.
  ///   - offset: First byte of the row; the row lies inside the region.
  ///   - byteCount: Bytes of the row, at least 4.
  func writeRow(_ id: Token, at offset: Int, byteCount: Int) {
    let row = start + offset
    row.initializeMemory(as: UInt8.self, repeating: Self.filler, count: byteCount)
    row.storeBytes(of: id.littleEndian, as: Token.self)
  }

  /// Reads back the id that a row begins with.
  func readRow(at offset: Int) -> Token {
    Token(littleEndian: (start + offset).loadUnaligned(as: Token.self))
  }
}
