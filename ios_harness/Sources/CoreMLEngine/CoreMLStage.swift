// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation

/// One loaded function with the arrays that its outputs are written to.
final class StageFunction {
  let model: MLModel
  let interface: FunctionInterface
  private let outputs: [String: MLMultiArray]
  private let features: StepFeatures
  private let options = MLPredictionOptions()

  /// - Parameters:
  ///   - function: What to load.
  ///   - units: Processors it prefers.
  /// - Throws: `CoreMLError.load` or `.interface`.
  init(_ function: CoreMLFunction, units: MLComputeUnits) throws(CoreMLError) {
    let configuration = MLModelConfiguration()
    configuration.computeUnits = units
    configuration.functionName = function.name
    do {
      model = try MLModel(contentsOf: function.url, configuration: configuration)
    } catch { throw CoreMLError.of(error) { .load($0) } }
    interface = try FunctionInterface(model.modelDescription)
    var outputs: [String: MLMultiArray] = [:]
    if let size = interface.vocabularySize {
      outputs["logits"] = try MLMultiArray.filled([1, 1, size], .float16)
    }
    if let size = interface.hiddenOutputWidth {
      outputs["hidden_out"] = try MLMultiArray.filled([1, interface.width, size], .float16)
    }
    self.outputs = outputs
    features = StepFeatures()
    // Without backings each prediction makes new arrays, and each array a surface.
    options.outputBackings = outputs
  }

  /// Hidden values of the last prediction.
  var hidden: MLMultiArray? { outputs["hidden_out"] }

  /// Outputs of a prediction that are not written to arrays of ours: none, unless Core ML ignores them.
  private(set) var unbacked = 0

  /// Predicts once, inside a pool: what Core ML leaves for it is given back before the next one.
  ///
  /// - Returns: The logits, or nil for a stage that has none; valid until the next prediction.
  func predict(
    _ arrays: StepArrays, hidden: MLMultiArray?, memory: StageMemory, rows: Int
  ) throws(CoreMLError) -> MLMultiArray? {
    features.set(arrays, hidden: hidden, interface)
    let result = autoreleasepool { () -> Result<MLMultiArray?, any Error> in
      Result { try output(of: memory, rows) }
    }
    switch result {
    case .success(let logits): return logits
    case .failure(let error): throw CoreMLError.of(error) { .prediction($0) }
    }
  }

  private func output(of memory: StageMemory, _ rows: Int) throws -> MLMultiArray? {
    let given: any MLFeatureProvider
    switch memory {
    case .states(let pair):
      let side: StatePair.Side = interface.width == 1 ? .decode : .prefill
      guard let state = pair.state(for: side, rows: rows) else {
        throw CoreMLError.prediction("no state for a width of \(interface.width)")
      }
      given = try model.prediction(from: features, using: state, options: options)
    case .features(let pair):
      features.set(pair.input)
      options.outputBackings = outputs.merging(
        pair.output.map { ($0.key + FunctionInterface.outputSuffix, $0.value) }
      ) { $1 }
      given = try model.prediction(from: features, options: options)
      pair.advance()
    case .none:
      given = try model.prediction(from: features, options: options)
    }
    return try backed(given)
  }

  /// The logits where Core ML put them: into our array, or into one of its own.
  private func backed(_ given: any MLFeatureProvider) throws(CoreMLError) -> MLMultiArray? {
    unbacked = 0
    for (name, own) in outputs {
      guard let array = given.featureValue(for: name)?.multiArrayValue else {
        throw .prediction("the prediction gave no \(name)")
      }
      if array === own { continue }
      unbacked += 1
      if name == "logits" { return array }
    }
    return outputs["logits"]
  }
}

/// Features of one prediction, of arrays that are made once.
private final class StepFeatures: MLFeatureProvider {
  private var values: [String: MLFeatureValue] = [:]

  var featureNames: Set<String> { Set(values.keys) }

  func featureValue(for featureName: String) -> MLFeatureValue? { values[featureName] }

  func set(_ arrays: StepArrays, hidden: MLMultiArray?, _ interface: FunctionInterface) {
    values["position_ids"] = MLFeatureValue(multiArray: arrays.positions)
    values["causal_mask"] = MLFeatureValue(multiArray: arrays.mask)
    if interface.choosesRow { values["logit_index"] = MLFeatureValue(multiArray: arrays.row) }
    if interface.hiddenInputWidth == nil {
      values["input_ids"] = MLFeatureValue(multiArray: arrays.ids)
    } else if let hidden {
      values["hidden_in"] = MLFeatureValue(multiArray: hidden)
    }
  }

  func set(_ caches: [String: MLMultiArray]) {
    for (name, array) in caches { values[name] = MLFeatureValue(multiArray: array) }
  }
}

/// The functions of one chunk of layers.
struct CoreMLStage {
  let decode: StageFunction?
  let prefill: StageFunction?

  init(_ files: CoreMLStageFiles, units: MLComputeUnits) throws(CoreMLError) {
    if let function = files.decode {
      decode = try StageFunction(function, units: units)
    } else {
      decode = nil
    }
    if let function = files.prefill {
      prefill = try StageFunction(function, units: units)
    } else {
      prefill = nil
    }
  }

  var functions: [StageFunction] { [decode, prefill].compactMap(\.self) }

  func function(width: Int) -> StageFunction? {
    functions.first { $0.interface.width == width }
  }

  func makeMemory(isShared: Bool) throws(CoreMLError) -> StageMemory {
    guard let interface = functions.first?.interface else { return .none }
    switch interface.memory {
    case .none: return .none
    case .features(let shapes): return .features(try FeaturePair(shapes))
    case .states(let shapes):
      var makers: [StatePair.Side: MLModel] = [:]
      makers[.decode] = decode?.model
      makers[.prefill] = prefill?.model
      return .states(StatePair(makers: makers, shapes: shapes, isShared: isShared))
    }
  }
}
