// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// Samples in hand: one `tokens` record holds at most 8 of them or 250 ms.
struct TokenBatch {
  private static let mostSamples = 8
  private static let longestNs: Int64 = 250_000_000

  private(set) var samples: [Sample] = []
  private let text: any TokenText

  init(text: any TokenText) { self.text = text }

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
  func write(to line: inout LineBuffer) {
    line.field("ids", samples.map(\.token))
    line.field("n", samples.map(\.rows))
    line.field("state", samples.first?.prediction.state)
    line.field("start_ns", samples.map(\.prediction.startNs))
    line.field("end_ns", samples.map(\.prediction.endNs))
    let textBytes = samples.filter { !$0.isEnd }.map { text.bytes(of: $0.token).count }
    line.field("text_bytes", textBytes.reduce(0, +))
  }
}

/// The consumer of a turn's stream: what a person would have seen.
struct TurnView {
  private(set) var consumed = 0
  private var hash = SHA256()

  mutating func show(_ token: Token) {
    consumed += 1
    withUnsafeBytes(of: token.littleEndian) { hash.update($0) }
  }

  /// SHA-256 over the ids as little-endian int32, 16 hexadecimal digits.
  var textHash: String { String(Hexadecimal.text(of: hash.finalize()).prefix(16)) }
}
