// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation

/// Names and shapes of one function of a decoder, read from the model and checked when it is loaded.
///
/// A feature of another name or shape would show as a failed prediction at best, as wrong tokens at worst.
struct FunctionInterface: Equatable {
  /// Where the function keeps keys and values between two predictions.
  enum Memory: Equatable {
    /// In states, by name with the shape of their buffers.
    case states([String: [Int]])
    /// In features, by name with their shape; outputs have the suffix `_out`.
    case features([String: [Int]])
    /// Nowhere.
    case none
  }

  /// Tokens of one prediction.
  let width: Int
  /// Rows of the cache.
  let length: Int
  let memory: Memory
  /// `input_ids`, or nil for a chunk that takes `hidden_in` of this width.
  let hiddenInputWidth: Int?
  /// Logits, or nil for a chunk that gives `hidden_out`.
  let vocabularySize: Int?
  let hiddenOutputWidth: Int?
  /// Whether one row's logits are asked for by `logit_index`.
  let choosesRow: Bool

  static let outputSuffix = "_out"

  /// - Throws: `CoreMLError.interface` naming the feature that is missing or different.
  init(_ description: MLModelDescription) throws(CoreMLError) {
    let inputs = FeatureShapes(description.inputDescriptionsByName)
    let outputs = FeatureShapes(description.outputDescriptionsByName)
    let positions = try inputs.required("position_ids", .int32, axes: 1)
    width = positions[0]
    let mask = try inputs.required("causal_mask", .float16, axes: 4)
    length = mask[3]
    guard mask == [1, 1, width, length], width >= 1, length >= width else {
      throw .interface(
        feature: "causal_mask", expected: "[1, 1, \(width), rows], not \(mask)")
    }
    hiddenInputWidth = try Self.hiddenInput(inputs, width)
    vocabularySize = try outputs.optional("logits", .float16, axes: 3)?[2]
    hiddenOutputWidth = try outputs.optional("hidden_out", .float16, axes: 3)?[2]
    if vocabularySize == nil, hiddenOutputWidth == nil {
      throw .interface(feature: "logits", expected: "an output, or hidden_out")
    }
    choosesRow = try inputs.optional("logit_index", .int32, axes: 1) != nil
    memory = try Self.memory(description, inputs, outputs, length)
    try Self.refuseUnknown(inputs, memory)
  }

  private static func hiddenInput(
    _ inputs: FeatureShapes, _ width: Int
  ) throws(CoreMLError) -> Int? {
    if let hidden = try inputs.optional("hidden_in", .float16, axes: 3) { return hidden[2] }
    let ids = try inputs.required("input_ids", .int32, axes: 2)
    guard ids == [1, width] else {
      throw .interface(feature: "input_ids", expected: "[1, \(width)], not \(ids)")
    }
    return nil
  }

  private static func memory(
    _ description: MLModelDescription, _ inputs: FeatureShapes, _ outputs: FeatureShapes,
    _ length: Int
  ) throws(CoreMLError) -> Memory {
    var states: [String: [Int]] = [:]
    for (name, feature) in description.stateDescriptionsByName {
      guard let constraint = feature.stateConstraint, constraint.dataType == .float16 else {
        throw .interface(feature: name, expected: "a state of halves")
      }
      states[name] = try checked(constraint.bufferShape, name, length)
    }
    if !states.isEmpty { return .states(states) }
    var caches: [String: [Int]] = [:]
    for name in ["k_cache", "v_cache", "kv_cache"] {
      guard let shape = try inputs.optional(name, .float16, axes: 4) else { continue }
      let output = try outputs.required(name + outputSuffix, .float16, axes: 4)
      guard output == shape else {
        throw .interface(feature: name + outputSuffix, expected: "\(shape), not \(output)")
      }
      caches[name] = try checked(shape, name, length)
    }
    return caches.isEmpty ? .none : .features(caches)
  }

  /// [layers, heads, rows, head width]; the Neural Engine refuses a last axis that is no multiple of 32
  /// (coremltools issue 2631).
  private static func checked(
    _ shape: [Int], _ name: String, _ length: Int
  ) throws(CoreMLError) -> [Int] {
    guard shape.count == 4, shape[2] == length, shape[3] % 32 == 0 else {
      throw .interface(
        feature: name, expected: "[layers, heads, \(length), a multiple of 32], not \(shape)")
    }
    return shape
  }

  /// An input that nobody fills would be refused at the first prediction only.
  private static func refuseUnknown(
    _ inputs: FeatureShapes, _ memory: Memory
  ) throws(CoreMLError) {
    var known: Set = ["input_ids", "hidden_in", "position_ids", "causal_mask", "logit_index"]
    if case .features(let caches) = memory { known.formUnion(caches.keys) }
    if let name = inputs.names.subtracting(known).min() {
      throw .interface(feature: name, expected: "no such input")
    }
  }
}

/// Shapes of the array features of a description.
private struct FeatureShapes {
  let features: [String: MLFeatureDescription]

  init(_ features: [String: MLFeatureDescription]) { self.features = features }

  var names: Set<String> { Set(features.keys) }

  func required(
    _ name: String, _ type: MLMultiArrayDataType, axes: Int
  ) throws(CoreMLError) -> [Int] {
    guard let shape = try optional(name, type, axes: axes) else {
      throw .interface(
        feature: name, expected: "a feature; the model has \(names.sorted())")
    }
    return shape
  }

  func optional(
    _ name: String, _ type: MLMultiArrayDataType, axes: Int
  ) throws(CoreMLError) -> [Int]? {
    guard let feature = features[name] else { return nil }
    guard let constraint = feature.multiArrayConstraint, constraint.dataType == type,
      constraint.shape.count == axes
    else {
      throw .interface(feature: name, expected: "\(axes) axes of \(type)")
    }
    return constraint.shape.map(\.intValue)
  }
}
