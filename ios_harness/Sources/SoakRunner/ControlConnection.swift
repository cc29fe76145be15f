// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore

/// One client: its lines in, replies and records out. Nothing here waits.
final class ControlConnection {
  let descriptor: Int32
  let acceptedNs: Int64
  /// The client has shown the launch's token.
  var isAdmitted = false
  /// Closed as soon as its output is sent.
  var closesWhenSent = false
  private(set) var isOpen = true

  private let reader: JournalReader
  private var input: [UInt8] = []
  private var output: ArraySlice<UInt8> = []
  /// Next byte of the journal to send; nil before `start` or `resume`.
  private var journalOffset: Int?

  private static let longestLineBytes = 1024 * 1024
  /// A client that does not read its replies is not read either.
  private static let mostWaitingBytes = 256 * 1024

  init(descriptor: Int32, acceptedNs: Int64, reader: JournalReader) {
    self.descriptor = descriptor
    self.acceptedNs = acceptedNs
    self.reader = reader
  }

  deinit { chost_close(descriptor) }

  /// Whether there is something to send.
  var wantsOutput: Bool {
    if !output.isEmpty { return true }
    return journalOffset.map { $0 < reader.journal.committedBytes } ?? false
  }

  /// Whether its lines are taken in.
  var wantsInput: Bool { !closesWhenSent && output.count < Self.mostWaitingBytes }

  func close() { isOpen = false }

  /// Ends our side, so that the client reads all and then the end.
  func endOutput() { chost_end_output(descriptor) }

  func reply(_ reply: ControlReply) { output += reply.line }

  /// Sends records from a byte of the journal on, after the replies that wait.
  func stream(from offset: Int) { journalOffset = offset }

  /// Reads what has arrived.
  ///
  /// - Returns: Whole lines. A line that is too long, or the end of the stream, closes the connection.
  func receive() -> [ArraySlice<UInt8>] {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    let count = chost_read(descriptor, &chunk, Int64(chunk.count))
    if count == 0 || count < 0 && !Self.mayComeLater(count) { close() }
    if count <= 0 { return [] }
    input += chunk[0..<Int(count)]
    var lines = input.split(
      separator: 0x0A, maxSplits: .max, omittingEmptySubsequences: false)
    input = Array(lines.removeLast())
    if input.count > Self.longestLineBytes || lines.contains(where: Self.isTooLong) { close() }
    return isOpen ? lines : []
  }

  /// Sends what the socket takes. Replies go between records, never into one.
  ///
  /// - Returns: Bytes that the socket took.
  func send() -> Int {
    var sent = 0
    if output.isEmpty, let offset = journalOffset {
      output = reader.lines(from: offset)
      journalOffset = offset + output.count
    }
    if !output.isEmpty {
      let count = output.withUnsafeBytes {
        chost_send(descriptor, $0.baseAddress, Int64($0.count))
      }
      if count < 0, !Self.mayComeLater(count) { close() }
      sent = max(0, Int(count))
      output.removeFirst(sent)
    }
    if closesWhenSent, output.isEmpty { close() }
    return sent
  }

  private static func isTooLong(_ line: ArraySlice<UInt8>) -> Bool {
    line.count > longestLineBytes
  }

  private static func mayComeLater(_ code: Int64) -> Bool { chost_is_transient(Int32(code)) }
}
