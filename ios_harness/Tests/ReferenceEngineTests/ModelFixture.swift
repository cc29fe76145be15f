// SPDX-License-Identifier: Apache-2.0

import Foundation
import HarnessCore
import ReferenceEngine
import StreamingLM

/// A model of 90,000 weights from the model kit, with the logits that its fp32 forward gives.
struct ModelFixture {
  struct Prompt {
    let ids: [Token]
    let topIDs: [[Token]]
    let topLogits: [[Double]]
  }

  let folder: String
  let weights: DecoderWeights

  init(_ storage: DecoderShape.Storage = .lut4) throws {
    folder = Self.folder(storage)
    weights = try DecoderWeights(path: folder + "/weights.safetensors")
  }

  static func folder(_ storage: DecoderShape.Storage) -> String {
    URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Fixtures/mini-\(storage.rawValue)").path
  }

  func goldens() throws -> [Prompt] {
    let bytes = try Files.read(folder + "/goldens.json", limitBytes: 1 << 24)
    return try JSONFields(try JSONReader.read(bytes)).objects("prompts").map { fields in
      Prompt(
        ids: try fields.int32s("ids"),
        topIDs: try fields.array("top_ids").map { row in
          (row.asArray ?? []).compactMap { $0.asInteger.map(Token.init) }
        },
        topLogits: try fields.array("top_logits").map { row in
          (row.asArray ?? []).compactMap(\.asDouble)
        })
    }
  }
}

extension DecoderEngine {
  /// Feeds ids one by one and returns the logits after each.
  func logitsOfEach(_ ids: [Token]) throws -> [[Float]] {
    try makeState(for: .conversation)
    defer { releaseState(for: .end) }
    return try ids.enumerated().map { row, id in
      try predict(Chunk(ids: [id], start: row, purpose: row == 0 ? .turn : .decode))
      return Array(logits)
    }
  }
}
