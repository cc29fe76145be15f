// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// Samples in hand: one `tokens` record holds at most 8 of them or 250 ms.
///
/// A sample is only kept here; text and lists are made when the record is due. Between two predictions nothing is in the
/// processor's caches, so that the same work costs several times as much for each sample as it does for eight at once.
struct TokenBatch {
  private static let mostSamples = 8
  private static let longestNs: Int64 = 250_000_000

  private(set) var samples: [Sample] = []

  /// Nothing in hand.
  init() { samples.reserveCapacity(Self.mostSamples) }

  /// Takes a sample in hand.
  ///
  /// - Returns: Whether the record is due: it is full, or the next sample would come too late for it.
  mutating func add(_ sample: Sample) -> Bool {
    samples.append(sample)
    let stepNs = sample.prediction.endNs - sample.prediction.startNs
    let spanNs = sample.prediction.endNs - samples[0].prediction.endNs + stepNs
    return samples.count == Self.mostSamples || spanNs > Self.longestNs
  }

  /// Forgets what was written.
  mutating func clear() { samples.removeAll(keepingCapacity: true) }

  /// Writes the fields of the `tokens` record.
  ///
  /// - Parameters:
  ///   - line: The record.
  ///   - view: Is shown the samples.
  ///   - uncounted: Rows that are missing from the app's count.
  func write(to line: inout LineBuffer, _ view: inout TurnView, uncounted: Int) {
    var text = ""
    var textBytes = 0
    for sample in samples {
      let shown = view.show(sample)
      text += shown.text
      textBytes += shown.byteCount
    }
    line.field("ids", samples.lazy.map { $0.token })
    line.field("n", samples.lazy.map { $0.rows - uncounted })
    line.field("state", samples.first?.prediction.state)
    line.field("start_ns", samples.lazy.map { $0.prediction.startNs })
    line.field("end_ns", samples.lazy.map { $0.prediction.endNs })
    line.field("text_bytes", textBytes)
    line.field("text", text)
  }
}

/// The consumer of a turn's stream: what a person would have seen.
struct TurnView {
  /// What a sample adds to the view.
  struct Shown {
    /// Whole characters.
    let text: String
    /// Bytes that the sample gave, shown or held back.
    let byteCount: Int
  }

  private(set) var consumed = 0
  private var hash = SHA256()
  private var assembler = UTF8Assembler()
  private let text: any TokenText
  private let endIDs: [Token]
  private let assemblesText: Bool

  /// - Parameters:
  ///   - text: Turns ids into bytes.
  ///   - endIDs: Give no text.
  ///   - assemblesText: Whether incomplete characters are held back.
  init(text: any TokenText, endIDs: [Token], assemblesText: Bool) {
    self.text = text
    self.endIDs = endIDs
    self.assemblesText = assemblesText
  }

  /// Bytes of a character that is not whole yet.
  var heldBytes: Int { assembler.heldCount }

  /// Shows a sample; an end token of the model gives no text.
  mutating func show(_ sample: Sample) -> Shown {
    consumed += 1
    withUnsafeBytes(of: sample.token.littleEndian) { hash.update($0) }
    let bytes = endIDs.contains(sample.token) ? [] : text.bytes(of: sample.token, at: sample.place)
    let shown =
      assemblesText ? assembler.push(bytes) : String(decoding: bytes, as: UTF8.self)
    return Shown(text: shown, byteCount: bytes.count)
  }

  /// SHA-256 over the ids as little-endian int32, 16 hexadecimal digits.
  var textHash: String { String(Hexadecimal.text(of: hash.finalize()).prefix(16)) }
}
