// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation

/// Keys and values of one stage between two predictions.
enum StageMemory {
  /// One state that both functions advance, or a state for each with rows copied when the other one is to go on.
  case states(StatePair)
  /// Features in two sets: the outputs of a prediction are the inputs of the next.
  case features(FeaturePair)
  /// Nothing.
  case none
}

/// Caches that go in and out as features.
final class FeaturePair {
  private(set) var input: [String: MLMultiArray]
  private(set) var output: [String: MLMultiArray]

  init(_ shapes: [String: [Int]]) throws(CoreMLError) {
    var sets: [[String: MLMultiArray]] = [[:], [:]]
    for index in sets.indices {
      for (name, shape) in shapes {
        sets[index][name] = try MLMultiArray.filled(shape, .float16)
      }
    }
    (input, output) = (sets[0], sets[1])
  }

  /// The outputs of the last prediction become the inputs of the next.
  func advance() { swap(&input, &output) }
}

/// The states of one stage.
final class StatePair {
  /// Which function a state is for.
  enum Side { case decode, prefill }

  private var states: [Side: MLState]
  private let shapes: [String: [Int]]
  private let isShared: Bool
  /// The side whose rows are up to date.
  private var current = Side.decode

  /// Makes the states and touches every page of them: the footprint steps once and then stays flat.
  init(makers: [Side: MLModel], shapes: [String: [Int]], isShared: Bool) {
    self.shapes = shapes
    self.isShared = isShared
    states = makers.mapValues { $0.makeState() }
    if isShared, let first = states[.prefill] ?? states[.decode] {
      states = [.decode: first, .prefill: first]
    }
    for state in isShared ? Array(states.values.prefix(1)) : Array(states.values) {
      for name in shapes.keys { state.withMultiArray(for: name) { $0.clear() } }
    }
  }

  /// The state for a function, with all rows in it.
  ///
  /// - Parameters:
  ///   - side: The function.
  ///   - rows: Rows that count.
  /// - Returns: nil when there is no such function.
  func state(for side: Side, rows: Int) -> MLState? {
    guard let wanted = states[side] else { return nil }
    if !isShared, side != current, let holder = states[current] {
      for name in shapes.keys { Self.copy(name, rows, from: holder, to: wanted) }
    }
    current = side
    return wanted
  }

  /// Copies rows between two states. Buffers may move from call to call, so both are open at once and none is kept.
  static func copy(_ name: String, _ rows: Int, from source: MLState, to target: MLState) {
    source.withMultiArray(for: name) { from in
      target.withMultiArray(for: name) { to in
        StateRows(from).copy(rows, to: StateRows(to))
      }
    }
  }
}

/// A state's buffer as rows, [layers, heads, rows, head width], with its own strides.
private struct StateRows {
  let array: MLMultiArray
  let shape: [Int]
  let strides: [Int]

  init(_ array: MLMultiArray) {
    self.array = array
    shape = array.shape.map(\.intValue)
    strides = array.strides.map(\.intValue)
  }

  func copy(_ rows: Int, to other: StateRows) {
    guard shape == other.shape, shape.count == 4, strides[3] == 1, other.strides[3] == 1 else {
      return
    }
    let bytes = shape[3] * MemoryLayout<UInt16>.size
    array.withUnsafeBytes { source in
      other.array.withUnsafeMutableBytes { target, _ in
        for layer in 0..<shape[0] {
          for head in 0..<shape[1] {
            for row in 0..<min(rows, shape[2]) {
              let from = offset(layer, head, row)
              let to = other.offset(layer, head, row)
              UnsafeMutableRawBufferPointer(rebasing: target[to..<to + bytes]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: source[from..<from + bytes]))
            }
          }
        }
      }
    }
  }

  private func offset(_ layer: Int, _ head: Int, _ row: Int) -> Int {
    (layer * strides[0] + head * strides[1] + row * strides[2]) * MemoryLayout<UInt16>.size
  }
}
