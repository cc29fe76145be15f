// SPDX-License-Identifier: Apache-2.0

import StreamingLM

/// Where keys and values of a decoder lie, as halves: [layers, kv heads, length, head width] each.
public struct CacheView {
  let keys: UnsafeMutablePointer<UInt16>
  let values: UnsafeMutablePointer<UInt16>
  /// Elements from one layer to the next.
  let layerStride: Int
  /// Elements from one head to the next.
  let headStride: Int
  let headWidth: Int

  /// - Parameters:
  ///   - keys: A state of its own.
  ///   - values: A state of its own.
  ///   - shape: Sizes of the model.
  public init(
    keys: UnsafeMutablePointer<UInt16>, values: UnsafeMutablePointer<UInt16>, shape: DecoderShape
  ) {
    headStride = shape.length * shape.headWidth
    self.keys = keys
    self.values = values
    layerStride = shape.kvHeads * headStride
    headWidth = shape.headWidth
  }

  /// - Parameters:
  ///   - joint: One state with the keys of layer l at 2l and its values at 2l + 1.
  ///   - shape: Sizes of the model.
  public init(joint: UnsafeMutablePointer<UInt16>, shape: DecoderShape) {
    headStride = shape.length * shape.headWidth
    keys = joint
    values = joint + shape.kvHeads * headStride
    layerStride = 2 * shape.kvHeads * headStride
    headWidth = shape.headWidth
  }

  @inline(__always)
  func offset(layer: Int, head: Int, row: Int) -> Int {
    layer &* layerStride &+ head &* headStride &+ row &* headWidth
  }
}

/// Keys and values of one conversation in mapped memory, at the model's full length.
public final class DecoderCache {
  private let keys: MappedArray<UInt16>
  private let values: MappedArray<UInt16>
  private let shape: DecoderShape

  /// Maps the memory and touches every page: the footprint steps once.
  ///
  /// - Parameter shape: Sizes of the model.
  /// - Throws: `EngineError.memory` when the system gives none.
  public init(shape: DecoderShape) throws(EngineError) {
    self.shape = shape
    keys = try MappedArray(count: shape.cacheElements)
    values = try MappedArray(count: shape.cacheElements)
    keys.start.update(repeating: 0, count: keys.count)
    values.start.update(repeating: 0, count: values.count)
  }

  /// Where keys and values lie; valid as long as the cache lives.
  public var view: CacheView {
    CacheView(keys: keys.start, values: values.start, shape: shape)
  }

  /// Takes the content of another cache over, all rows of it: what features in and out cost.
  func copy(from other: DecoderCache) {
    keys.start.update(from: other.keys.start, count: keys.count)
    values.start.update(from: other.values.start, count: values.count)
  }
}
