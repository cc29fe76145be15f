// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine

/// One prediction of the stand-in: what the kit's graph computes, from the features it is given.
struct StandInStep {
  private let package: StandInPackage
  private let description: MLModelDescription
  private let options: MLPredictionOptions
  private let inputs: [String: MLMultiArray]
  private let caches: [String: MLMultiArray]
  private let width: Int
  private let start: Int

  /// Checks the features as Core ML does: each of them, by name, shape and type.
  init(
    package: StandInPackage, description: MLModelDescription, input: any MLFeatureProvider,
    state: MLState?, options: MLPredictionOptions
  ) throws {
    self.package = package
    self.description = description
    self.options = options
    var inputs: [String: MLMultiArray] = [:]
    for (name, feature) in description.inputDescriptionsByName {
      guard let array = input.featureValue(for: name)?.multiArrayValue else {
        throw MLModel.error("feature \(name) is missing")
      }
      guard feature.multiArrayConstraint?.allows(array) == true else {
        throw MLModel.error("feature \(name) has shape \(array.shape), which is not the model's")
      }
      inputs[name] = array
    }
    self.inputs = inputs
    let positions = try Self.positions(inputs, package.weights.shape.length)
    (start, width) = (positions.lowerBound, positions.count)
    caches = try Self.caches(package, inputs, state, options)
  }

  /// The graph writes rows `positions.first ..< positions.last + 1`; anything but a run inside the cache is an error.
  private static func positions(_ inputs: [String: MLMultiArray], _ length: Int) throws -> Range<
    Int
  > {
    let positions = (inputs["position_ids"]?.int32s ?? []).map { Int($0) }
    guard let first = positions.first, first >= 0, first + positions.count <= length,
      positions == Array(first..<first + positions.count)
    else { throw MLModel.error("position_ids are no run of rows inside the cache") }
    return first..<first + positions.count
  }

  /// Where the rows are: in the state, in the outputs that stand for the inputs, or nowhere.
  private static func caches(
    _ package: StandInPackage, _ inputs: [String: MLMultiArray], _ state: MLState?,
    _ options: MLPredictionOptions
  ) throws -> [String: MLMultiArray] {
    var caches: [String: MLMultiArray] = [:]
    for (name, shape) in package.caches {
      switch package.layout {
      case .explicit:
        guard let input = inputs[name] else { continue }
        let backing = options.outputBackings[name + "_out"] as? MLMultiArray
        if backing === input { throw MLModel.error("output backing \(name)_out is an input") }
        let output = backing ?? MLMultiArray(lengths: shape, .float16)
        output.halves.update(from: input.halves, count: input.count)
        caches[name] = output
      case .separate, .multifunction:
        caches[name] = state?.buffers[name] ?? zeroed(shape)
      case .stateless: break
      }
    }
    if package.layout == .stateless {
      let rows = package.cacheShape
      return ["k_cache": zeroed(rows), "v_cache": zeroed(rows)]
    }
    return caches
  }

  private static func zeroed(_ shape: [Int]) -> MLMultiArray {
    let array = MLMultiArray(lengths: shape, .float16)
    array.zero()
    return array
  }

  /// Puts one NaN into the last row of the values: masked rows poison as well.
  func poison() {
    guard let cache = caches["v_cache"] ?? caches["kv_cache"] else { return }
    cache.halves[cache.count - 1] = 0x7E00
  }

  func run(_ decoder: Decoder) throws -> StandInFeatures {
    try fill(decoder)
    guard let mask = inputs["causal_mask"] else { throw MLModel.error("no causal_mask") }
    decoder.run(
      layers: package.layers, count: width, start: start, cache: try view(),
      visibility: .mask(mask.halves))
    var outputs: [String: MLMultiArray] = [:]
    if package.layout == .explicit {
      for (name, cache) in caches { outputs[name + "_out"] = cache }
    }
    if package.hasHead {
      decoder.computeLogits(of: try logitRow())
      outputs["logits"] = output("logits", Array(decoder.logits))
    } else {
      let count = width * package.weights.shape.width
      outputs["hidden_out"] = output(
        "hidden_out", Array(UnsafeBufferPointer(start: decoder.block, count: count)))
    }
    return StandInFeatures(arrays: outputs)
  }

  private func fill(_ decoder: Decoder) throws {
    if let ids = inputs["input_ids"] { return try decoder.embed(ids.int32s[...]) }
    guard let hidden = inputs["hidden_in"] else { throw MLModel.error("no input_ids") }
    for index in 0..<hidden.count { decoder.block[index] = HalfFloat.widen(hidden.halves[index]) }
  }

  private func view() throws -> CacheView {
    let shape = package.weights.shape
    if let joint = caches["kv_cache"] { return CacheView(joint: joint.halves, shape: shape) }
    guard let keys = caches["k_cache"], let values = caches["v_cache"] else {
      throw MLModel.error("no cache")
    }
    return CacheView(keys: keys.halves, values: values.halves, shape: shape)
  }

  private func logitRow() throws -> Int {
    guard let index = inputs["logit_index"] else { return width - 1 }
    let row = Int(index.int32s[0])
    guard (0..<width).contains(row) else { throw MLModel.error("logit_index \(row) is outside") }
    return row
  }

  private func output(_ name: String, _ values: [Float]) -> MLMultiArray {
    let lengths = description.outputDescriptionsByName[name]?.multiArrayConstraint?.shape ?? []
    let backing = package.faults.ignoresBackings ? nil : options.outputBackings[name]
    let array =
      backing as? MLMultiArray
      ?? MLMultiArray(
        lengths: lengths.map(\.intValue), .float16,
        reportsNoStrides: package.faults.ignoresBackings)
    for (index, value) in values.enumerated() { array.halves[index] = HalfFloat.narrow(value) }
    return array
  }
}

/// What a prediction gives.
struct StandInFeatures: MLFeatureProvider {
  let arrays: [String: MLMultiArray]

  var featureNames: Set<String> { Set(arrays.keys) }

  func featureValue(for featureName: String) -> MLFeatureValue? {
    arrays[featureName].map { MLFeatureValue(multiArray: $0) }
  }
}
