// SPDX-License-Identifier: Apache-2.0

// Test equipment: a stand-in for Apple's Core ML on Linux, with the iOS 18 spelling of what `CoreMLEngine` uses and
// nothing else, computed by the reference decoder. The manifest leaves it out on Apple systems.

import Foundation

/// Types of elements.
public enum MLMultiArrayDataType: Int, Sendable {
  /// Half precision.
  case float16 = 65_552
  /// Single precision.
  case float32 = 65_568
  /// 32-bit integers.
  case int32 = 131_104

  var byteCount: Int { self == .float16 ? 2 : 4 }
}

/// An array of numbers. Its memory is not zeroed, as Apple's need not be: it comes full of NaN and of ids of -1.
public class MLMultiArray {
  /// Length of each axis.
  public let shape: [NSNumber]
  /// Elements from one index of an axis to the next.
  public let strides: [NSNumber]
  /// Type of the elements.
  public let dataType: MLMultiArrayDataType
  let start: UnsafeMutableRawPointer

  /// Elements.
  public var count: Int { lengths.reduce(1, *) }

  var lengths: [Int] { shape.map(\.intValue) }
  private var byteCount: Int { count * dataType.byteCount }

  /// - Parameters:
  ///   - shape: Length of each axis.
  ///   - dataType: Type of the elements.
  /// - Throws: Nothing here; Apple's does.
  public convenience init(shape: [NSNumber], dataType: MLMultiArrayDataType) throws {
    self.init(lengths: shape.map(\.intValue), dataType)
  }

  /// With `reportsNoStrides` all strides read 0, as was reported of logits.
  init(lengths: [Int], _ dataType: MLMultiArrayDataType, reportsNoStrides: Bool = false) {
    var strides = [Int](repeating: 1, count: lengths.count)
    for axis in lengths.indices.dropLast().reversed() {
      strides[axis] = strides[axis + 1] * lengths[axis + 1]
    }
    shape = lengths.map { NSNumber(value: $0) }
    self.strides = strides.map { NSNumber(value: reportsNoStrides ? 0 : $0) }
    self.dataType = dataType
    let bytes = max(1, lengths.reduce(dataType.byteCount, *))
    start = .allocate(byteCount: bytes, alignment: 64)
    start.initializeMemory(as: UInt8.self, repeating: 0xFF, count: bytes)
  }

  deinit { start.deallocate() }

  /// Reads the memory.
  public func withUnsafeBytes<R>(
    _ body: (UnsafeRawBufferPointer) throws -> R
  ) rethrows -> R {
    try body(UnsafeRawBufferPointer(start: start, count: byteCount))
  }

  /// Writes the memory; the second argument are the strides.
  public func withUnsafeMutableBytes<R>(
    _ body: (UnsafeMutableRawBufferPointer, [Int]) throws -> R
  ) rethrows -> R {
    try body(
      UnsafeMutableRawBufferPointer(start: start, count: byteCount), strides.map(\.intValue))
  }

  func zero() { start.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount) }

  /// A copy of the ids.
  var int32s: [Int32] {
    Array(
      UnsafeBufferPointer(start: start.assumingMemoryBound(to: Int32.self), count: count))
  }

  var halves: UnsafeMutablePointer<UInt16> { start.assumingMemoryBound(to: UInt16.self) }
}
