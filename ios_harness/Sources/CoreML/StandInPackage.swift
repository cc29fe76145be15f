// SPDX-License-Identifier: Apache-2.0

import Foundation
import HarnessCore
import ReferenceEngine
import Synchronization

/// What stands for a compiled model: a folder with `weights.safetensors` of the model kit and `standin.json`, which holds
/// the part as the kit describes it (layout, functions, chunk) and the faults to play.
struct StandInPackage {
  enum Layout: String, CaseIterable {
    case separate, multifunction, explicit, stateless
  }

  /// What a model does when it is given a state of another one.
  enum ForeignState: String, CaseIterable {
    /// Fails.
    case refuse
    /// Advances it, as two models of one shape might.
    case serve
    /// Computes without it and says nothing.
    case ignore
  }

  let weights: DecoderWeights
  let layout: Layout
  let functions: [String]
  let layers: Range<Int>
  let hasEmbedding: Bool
  let hasHead: Bool
  let faults: Faults

  struct Faults {
    var loadFails: String?
    var predictFails: String?
    var failsAt = 0
    var poisonsAt = 0
    var surfaceLimit = 16_384
    var leakedSurfaces = 0
    /// Outputs go to new arrays whose strides all read 0.
    var ignoresBackings = false
    /// `MLComputeUnits` the model cannot be loaded with.
    var refusedUnits: [Int] = []
    var foreignState = ForeignState.refuse
    var renames: [String: String] = [:]
  }

  init(_ folder: URL) throws {
    let description = try Files.read(folder.path + "/standin.json", limitBytes: 65_536)
    let fields = try JSONFields(try JSONReader.read(description), at: "standin")
    weights = try WeightsCache.weights(folder.path + "/weights.safetensors")
    layout = try fields.choice("layout", Layout.self)
    functions = try fields.array("functions").compactMap(\.asString)
    let chunk = try fields.object("chunk")
    let (number, count) = (try chunk.integer("number"), try chunk.integer("of"))
    let first = try chunk.integer("first_layer")
    layers = first..<first + (try chunk.integer("layer_count"))
    hasEmbedding = number == 1
    hasHead = number == count
    faults = fields.has("faults") ? try Faults(try fields.object("faults")) : Faults()
  }

  var cacheShape: [Int] {
    let shape = weights.shape
    return [layers.count, shape.kvHeads, shape.length, shape.headWidth]
  }

  /// Names and shapes of the states, or of the caches that are features.
  var caches: [String: [Int]] {
    if layout == .stateless { return [:] }
    if weights.shape.isJoint { return ["kv_cache": [2 * layers.count] + cacheShape.dropFirst()] }
    return ["k_cache": cacheShape, "v_cache": cacheShape]
  }

  func width(of function: String) -> Int {
    if layout == .stateless { return weights.shape.length }
    return function == "prefill" ? weights.shape.chunk : 1
  }

  func description(of function: String) -> MLModelDescription {
    let shape = weights.shape
    let width = width(of: function)
    var inputs = [
      hasEmbedding
        ? array("input_ids", [1, width], .int32)
        : array("hidden_in", [1, width, shape.width], .float16),
      array("position_ids", [width], .int32),
      array("causal_mask", [1, 1, width, shape.length], .float16),
    ]
    if function == "prefill", hasHead { inputs.append(array("logit_index", [1], .int32)) }
    var outputs = [
      hasHead
        ? array("logits", [1, 1, shape.vocabularySize], .float16)
        : array("hidden_out", [1, width, shape.width], .float16)
    ]
    if layout == .explicit {
      inputs += caches.map { array($0.key, $0.value, .float16) }
      outputs += caches.map { array($0.key + "_out", $0.value, .float16) }
    }
    let states = layout == .explicit ? [:] : caches
    return MLModelDescription(
      inputs: inputs, outputs: outputs,
      states: states.map { name, shape in
        MLFeatureDescription(name, state: MLStateConstraint(shape, .float16))
      })
  }

  private func array(
    _ name: String, _ shape: [Int], _ type: MLMultiArrayDataType
  ) -> MLFeatureDescription {
    MLFeatureDescription(
      faults.renames[name] ?? name, array: MLMultiArrayConstraint(shape, type))
  }
}

extension StandInPackage.Faults {
  init(_ fields: JSONFields) throws {
    loadFails = fields["load_fails"].asString
    predictFails = fields["predict_fails"].asString
    failsAt = fields["fails_at"].asInteger ?? 1
    poisonsAt = fields["poisons_at"].asInteger ?? 0
    surfaceLimit = fields["surface_limit"].asInteger ?? surfaceLimit
    leakedSurfaces = fields["leaked_surfaces"].asInteger ?? 0
    ignoresBackings = fields["ignores_backings"].asBool ?? false
    refusedUnits = (fields["refused_units"].asArray ?? []).compactMap(\.asInteger)
    if fields.has("foreign_state") {
      foreignState = try fields.choice("foreign_state", StandInPackage.ForeignState.self)
    }
    renames = (fields["renames"].asObject ?? [:]).compactMapValues(\.asString)
  }
}

/// Expanded weights by file: every model of a test would expand them again.
enum WeightsCache {
  private static let cache = Mutex<[String: DecoderWeights]>([:])

  static func weights(_ path: String) throws -> DecoderWeights {
    // Tests copy one file to many folders.
    let resolved = URL(filePath: path).resolvingSymlinksInPath().path
    return try cache.withLock { cache in
      if let weights = cache[resolved] { return weights }
      let weights = try DecoderWeights(path: resolved)
      cache[resolved] = weights
      return weights
    }
  }
}
