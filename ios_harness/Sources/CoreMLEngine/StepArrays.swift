// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation
import ReferenceEngine
import StreamingLM

/// Inputs of one width, shared by all stages, made once and filled before each prediction.
final class StepArrays {
  let ids: MLMultiArray
  let positions: MLMultiArray
  let mask: MLMultiArray
  let row: MLMultiArray
  private let width: Int
  private let length: Int

  init(width: Int, length: Int) throws(CoreMLError) {
    self.width = width
    self.length = length
    ids = try MLMultiArray.filled([1, width], .int32)
    positions = try MLMultiArray.filled([width], .int32)
    mask = try MLMultiArray.filled([1, 1, width, length], .float16)
    row = try MLMultiArray.filled([1], .int32)
  }

  /// Writes ids, positions, mask and the row whose logits are wanted.
  ///
  /// Padding repeats the last id: what an array holds before it is written is not defined, and an id outside the
  /// vocabulary reads other memory.
  func fill(_ tokens: ArraySlice<Token>, start: Int) {
    let last = tokens.last ?? 0
    ids.withElements(of: Int32.self) { ids in
      for index in 0..<width {
        ids[index] = index < tokens.count ? tokens[tokens.startIndex + index] : last
      }
    }
    positions.withElements(of: Int32.self) { positions in
      for index in 0..<width { positions[index] = Int32(start + index) }
    }
    row.withElements(of: Int32.self) { $0[0] = Int32(tokens.count - 1) }
    fillMask(start)
  }

  /// Row j of the chunk sees rows 0...start + j: one slot too many changes no token and is still wrong.
  private func fillMask(_ start: Int) {
    mask.withElements(of: UInt16.self) { mask in
      for index in 0..<width {
        let line = index * length
        let seen = min(length, start + index + 1)
        mask[line..<line + seen].update(repeating: 0)
        mask[line + seen..<line + length].update(repeating: HalfFloat.masked)
      }
    }
  }
}

extension MLMultiArray {
  /// An array of zeros: a new one holds whatever was in its memory.
  static func filled(
    _ shape: [Int], _ type: MLMultiArrayDataType
  ) throws(CoreMLError) -> MLMultiArray {
    do {
      let array = try MLMultiArray(shape: shape.map { NSNumber(value: $0) }, dataType: type)
      array.clear()
      return array
    } catch { throw .memory("\(shape) of \(type): \(error)") }
  }

  /// Writes zeros to all of its memory, which touches every page of it.
  func clear() {
    withUnsafeMutableBytes { bytes, _ in
      _ = bytes.initializeMemory(as: UInt8.self, repeating: 0)
    }
  }

  /// Opens the memory of an array that we made, whose elements lie one after another.
  func withElements<Element>(
    of type: Element.Type, _ body: (UnsafeMutableBufferPointer<Element>) -> Void
  ) {
    withUnsafeMutableBytes { bytes, _ in body(bytes.bindMemory(to: type)) }
  }

  /// Copies a row of halves out, whatever array Core ML chose to give.
  ///
  /// Strides of [0, 0, 0] were reported for logits, so a last stride of 0 is not believed.
  ///
  /// - Throws: `CoreMLError.prediction` when the array does not hold `into.count` halves.
  func copyHalves(into values: UnsafeMutableBufferPointer<Float>) throws(CoreMLError) {
    guard dataType == .float16, count == values.count else {
      throw .prediction("the logits are \(shape) of \(dataType), not \(values.count) halves")
    }
    let step = max(1, strides.last?.intValue ?? 1)
    let isInside = withUnsafeBytes { bytes in
      let halves = bytes.bindMemory(to: UInt16.self)
      guard (values.count - 1) * step < halves.count else { return false }
      for index in values.indices { values[index] = HalfFloat.widen(halves[index * step]) }
      return true
    }
    if !isInside { throw .prediction("the logits are shorter than their strides say") }
  }
}
