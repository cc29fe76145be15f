// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// A real decoder on the CPU: a folder with `weights.safetensors` of the model kit, named by that file's digest.
struct ReferenceSoakModel: SoakModel {
  private let weights: DecoderWeights
  /// `goldens.json` beside the weights; nil where there is none.
  private let goldens: String?
  let facts: ModelFacts

  private static let largestFileBytes = 1 << 30

  /// Reads and expands the weights; see `ModelReader`.
  static func read(folder: String, digest: String) throws -> (any SoakModel)? {
    let bytes = try Files.read("\(folder)/weights.safetensors", limitBytes: largestFileBytes)
    guard SHA256.hexadecimal(of: bytes) == digest else { return nil }
    let goldens = "\(folder)/goldens.json"
    return try ReferenceSoakModel(
      weights: DecoderWeights(file: SafetensorsFile(bytes: bytes)),
      goldens: Files.exists(goldens) ? goldens : nil)
  }

  private init(weights: DecoderWeights, goldens: String?) throws {
    self.weights = weights
    self.goldens = goldens
    facts = try ModelFacts(
      engine: "reference", shape: weights.shape, weightsBytes: weights.byteCount)
  }

  func supports(_ sampling: SamplingSetting) -> Bool { true }

  /// Compares the logits with the goldens first: a decoder that computes another model is not soaked.
  func load(_ order: LoadOrder) throws -> LoadedModel {
    let engine = try DecoderEngine(weights: weights, sampling: order.sampling)
    if let goldens {
      let check = try GoldenCheck(path: goldens, engine)
      order.willDo("load", check.description)
      if !check.isMet { throw EngineError.failed("not the model of its \(check.description)") }
    }
    return LoadedModel(engine: engine, load: try engine.reload())
  }
}

extension ModelFacts {
  /// What a model of the kit says of itself. Its weights are random, so it has no special ids: 0 ends a turn.
  ///
  /// - Parameters:
  ///   - engine: A word for records.
  ///   - shape: Sizes of the model.
  ///   - weightsBytes: Bytes of the weights as the engine holds them.
  /// - Throws: `JSONError.field` for weights that are neither 4 nor 8 bits.
  public init(engine: String, shape: DecoderShape, weightsBytes: Int) throws(JSONError) {
    guard let bits = shape.storage.bits else {
      throw .field(path: "fleet.recipe.weights", expected: "4 or 8 bits")
    }
    self.init(
      engine: engine, quantization: bits == 4 ? .int4 : .int8, bitsPerWeight: bits,
      weightsBytes: weightsBytes, capacity: shape.length, vocabularySize: shape.vocabularySize,
      firstID: 1, endIDs: [0], bosID: nil, chunkWidths: [shape.chunk], textName: "decimal",
      text: DecimalText())
  }
}

extension DecoderShape.Storage {
  fileprivate var bits: Int? {
    switch self {
    case .lut4, .int4: 4
    case .int8: 8
    case .fp16: nil
    }
  }
}
