// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation
import StreamingLM

/// Whether one state serves the decode and the prefill function.
public enum StateSharing: String, Sendable, Equatable {
  /// There is only one function, or no state.
  case notNeeded = "not_needed"
  /// A state that one function made is advanced by the other.
  case shared
  /// Each function has a state; rows are copied when the other one is to go on.
  case copied
}

/// All stages of a loaded decoder, checked against each other.
final class CoreMLModel {
  let stages: [CoreMLStage]
  let length: Int
  let vocabularySize: Int
  let widths: [Int]
  let memory: FunctionInterface.Memory
  private let arrays: [Int: StepArrays]

  /// - Throws: `CoreMLError` when a model cannot be loaded or does not fit the others.
  init(_ files: [CoreMLStageFiles], units: MLComputeUnits) throws(CoreMLError) {
    var stages: [CoreMLStage] = []
    for stage in files { stages.append(try CoreMLStage(stage, units: units)) }
    let interfaces = stages.flatMap(\.functions).map(\.interface)
    guard let first = interfaces.first,
      let size = stages.last?.functions.first?.interface.vocabularySize
    else { throw .interface(feature: "logits", expected: "an output of the last chunk") }
    self.stages = stages
    length = first.length
    vocabularySize = size
    memory = first.memory
    widths = Set(interfaces.map(\.width)).sorted()
    var arrays: [Int: StepArrays] = [:]
    for width in widths { arrays[width] = try StepArrays(width: width, length: first.length) }
    self.arrays = arrays
    try check(interfaces)
  }

  /// Bytes of keys and values of all stages.
  var stateBytes: Int {
    stages.compactMap(\.functions.first?.interface.memory).reduce(0) { total, memory in
      switch memory {
      case .none: total
      case .states(let shapes), .features(let shapes):
        total + shapes.values.reduce(0) { $0 + $1.reduce(MemoryLayout<UInt16>.size, *) }
      }
    }
  }

  private func check(_ interfaces: [FunctionInterface]) throws(CoreMLError) {
    for interface in interfaces where interface.length != length {
      throw .interface(
        feature: "causal_mask", expected: "\(length) rows as in the first model")
    }
    for stage in stages {
      let memories = stage.functions.map(\.interface.memory)
      guard memories.allSatisfy({ $0 == memories[0] }) else {
        throw .interface(feature: "states", expected: "the same for decode and prefill")
      }
      for width in widths where stage.function(width: width) == nil {
        throw .interface(feature: "position_ids", expected: "a width of \(width) in each chunk")
      }
    }
    for (earlier, later) in zip(stages, stages.dropFirst()) {
      let given = earlier.functions.first?.interface.hiddenOutputWidth
      guard let given, later.functions.first?.interface.hiddenInputWidth == given else {
        throw .interface(feature: "hidden_in", expected: "the chunk before's hidden_out")
      }
    }
  }

  func makeMemories(isShared: Bool) throws(CoreMLError) -> [StageMemory] {
    var memories: [StageMemory] = []
    for stage in stages { memories.append(try stage.makeMemory(isShared: isShared)) }
    return memories
  }

  /// Predicts through all stages.
  ///
  /// - Returns: The logits and how many outputs were not written to arrays of ours.
  func predict(
    _ ids: ArraySlice<Token>, start: Int, width: Int, _ memories: [StageMemory]
  ) throws(CoreMLError) -> (logits: MLMultiArray, unbacked: Int) {
    guard let arrays = arrays[width] else { throw .prediction("no width of \(width)") }
    arrays.fill(ids, start: start)
    var hidden: MLMultiArray?
    var logits: MLMultiArray?
    var unbacked = 0
    for (stage, memory) in zip(stages, memories) {
      guard let function = stage.function(width: width) else { continue }
      logits = try function.predict(arrays, hidden: hidden, memory: memory, rows: start)
      hidden = function.hidden
      unbacked += function.unbacked
    }
    guard let logits else { throw .prediction("the last chunk gave no logits") }
    return (logits, unbacked)
  }
}
