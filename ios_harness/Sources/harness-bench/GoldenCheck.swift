// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// How near the reference engine's logits are to those of the model kit's fp32 forward.
struct GoldenCheck {
  let weights: DecoderWeights
  /// `goldens.json` of the kit.
  let path: String

  private static let largestFileBytes = 1 << 26

  func table() throws -> String {
    let document = try JSONFields(
      try JSONReader.read(try Files.read(path, limitBytes: Self.largestFileBytes)))
    let engine = try DecoderEngine(weights: weights)
    var tally = Tally()
    for prompt in try document.objects("prompts") {
      try engine.makeState(for: .conversation)
      let (ids, logits) = (try prompt.array("top_ids"), try prompt.array("top_logits"))
      for (row, id) in try prompt.int32s("ids").enumerated() {
        try engine.predict(Chunk(ids: [id], start: row, purpose: row == 0 ? .turn : .decode))
        tally.add(
          engine.logits, ids: ids[row].asArray ?? [], golden: logits[row].asArray ?? [])
      }
      engine.releaseState(for: .end)
    }
    return Report.table(
      "Logits against the goldens of the model kit",
      ["positions", "top-1 equal", "top-1 among the first 3", "largest error of a top-5 logit"],
      [
        [
          "\(tally.positions)", "\(tally.equal)", "\(tally.contained)",
          Report.text(tally.largestError, 4),
        ]
      ])
  }

  private struct Tally {
    var positions = 0
    var equal = 0
    var contained = 0
    var largestError = 0.0

    mutating func add(
      _ logits: UnsafeBufferPointer<Float>, ids: [JSONValue], golden: [JSONValue]
    ) {
      let tokens = ids.compactMap(\.asInteger)
      guard let first = tokens.first else { return }
      let better = logits.count { $0 > logits[first] }
      positions += 1
      if better == 0 { equal += 1 }
      if better < 3 { contained += 1 }
      for (token, value) in zip(tokens, golden.compactMap(\.asDouble)) {
        largestError = max(largestError, abs(Double(logits[token]) - value))
      }
    }
  }
}
