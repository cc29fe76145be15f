// SPDX-License-Identifier: Apache-2.0

import CHost
import StreamingLM

/// The forward pass in single precision, a block of tokens at a time, over a cache of halves.
///
/// Not thread-safe: one owner, one block in flight. Processor time inside attention and outside of it is summed, so that
/// the growth of the one can be told from the flatness of the other.
public final class Decoder {
  /// Which rows of the cache a token sees.
  public enum Visibility {
    /// Its own and all before it.
    case causal
    /// All rows, with halves [block, length] added to the scores, as a graph does.
    case mask(UnsafePointer<UInt16>)
  }

  /// The weights.
  public let weights: DecoderWeights
  /// Most tokens of a block.
  public let widestBlock: Int
  /// Logits of the last `computeLogits`, [vocabulary].
  public let logits: UnsafeBufferPointer<Float>
  /// Nanoseconds of processor time inside attention since the decoder was made.
  public private(set) var attentionNs: Int64 = 0
  /// Nanoseconds of processor time inside layers and head, attention left out, since the decoder was made.
  public private(set) var projectionNs: Int64 = 0

  private let shape: DecoderShape
  private let scratch: MappedArray<Float>
  private let hidden: UnsafeMutablePointer<Float>
  private let normed: UnsafeMutablePointer<Float>
  private let queries: UnsafeMutablePointer<Float>
  private let keys: UnsafeMutablePointer<Float>
  private let values: UnsafeMutablePointer<Float>
  private let mixed: UnsafeMutablePointer<Float>
  private let gate: UnsafeMutablePointer<Float>
  private let up: UnsafeMutablePointer<Float>
  private let scores: UnsafeMutablePointer<Float>
  /// Room for a row of the widest matrix.
  private let row: UnsafeMutablePointer<Float>
  private let logitStore: UnsafeMutablePointer<Float>

  /// - Parameters:
  ///   - weights: The weights, shared by as many decoders as wanted.
  ///   - widestBlock: Most tokens of a block; 8 keep the inputs of a product in the first cache.
  /// - Throws: `EngineError.memory` when the system gives none.
  public init(weights: DecoderWeights, widestBlock: Int = 8) throws(EngineError) {
    let shape = weights.shape
    let (query, key) = (shape.heads * shape.headWidth, shape.kvHeads * shape.headWidth)
    let perToken = [shape.width, shape.width, query, key, key, query, shape.inner, shape.inner]
    let sizes =
      perToken.map { $0 * widestBlock } + [
        shape.length + 8, shape.vocabularySize, max(shape.width, query, shape.inner),
      ]
    let scratch = try MappedArray<Float>(count: sizes.reduce(0, +))
    var next = scratch.start
    func take(_ index: Int) -> UnsafeMutablePointer<Float> {
      defer { next += sizes[index] }
      return next
    }
    (hidden, normed, queries, keys) = (take(0), take(1), take(2), take(3))
    (values, mixed, gate, up) = (take(4), take(5), take(6), take(7))
    (scores, logitStore, row) = (take(8), take(9), take(10))
    logits = UnsafeBufferPointer(start: logitStore, count: shape.vocabularySize)
    self.scratch = scratch
    self.shape = shape
    self.weights = weights
    self.widestBlock = widestBlock
  }

  /// The block's hidden values, [block, width].
  public var block: UnsafeMutablePointer<Float> { hidden }

  /// Begins a block with ids.
  ///
  /// - Parameter ids: At most `widestBlock`, each inside the vocabulary.
  /// - Throws: `EngineError.failed` for an id outside the vocabulary: it would read other memory.
  public func embed(_ ids: ArraySlice<Token>) throws(EngineError) {
    for (row, id) in ids.enumerated() {
      guard id >= 0, Int(id) < shape.vocabularySize else {
        throw .failed("id \(id) is outside the vocabulary of \(shape.vocabularySize)")
      }
      Kernels.widen(
        weights.embedding.values + Int(id) * shape.width, shape.width,
        into: hidden + row * shape.width)
    }
  }

  /// Runs the block through layers; its keys and values are written to rows `start...` of the cache.
  ///
  /// - Parameters:
  ///   - range: Layers of the model; layer `range.lowerBound` is the first of the cache.
  ///   - count: Tokens of the block.
  ///   - start: Row and position of the first token.
  ///   - cache: Of the layers.
  ///   - visibility: Rows that a token sees.
  public func run(
    layers range: Range<Int>, count: Int, start: Int, cache: CacheView,
    visibility: Visibility = .causal
  ) {
    for (slot, layer) in weights.layers[range].enumerated() {
      let beganNs = chost_thread_cpu_ns()
      normalize(count, layer.attentionGain)
      multiply(layer.queries, normed, count, into: queries)
      multiply(layer.keys, normed, count, into: keys)
      multiply(layer.values, normed, count, into: values)
      writeRows(slot, count, start, cache)
      let attendsNs = chost_thread_cpu_ns()
      for token in 0..<count { attend(slot, token, start, cache, visibility) }
      let attendedNs = chost_thread_cpu_ns()
      multiply(layer.output, mixed, count, into: hidden, adding: true)
      normalize(count, layer.innerGain)
      multiply(layer.gate, normed, count, into: gate)
      multiply(layer.up, normed, count, into: up)
      Kernels.swiglu(gate, up, count: count * shape.inner)
      multiply(layer.down, gate, count, into: hidden, adding: true)
      attentionNs += attendedNs - attendsNs
      projectionNs += chost_thread_cpu_ns() - attendedNs + attendsNs - beganNs
    }
  }

  /// Computes the logits of one token of the block.
  public func computeLogits(of token: Int) {
    let beganNs = chost_thread_cpu_ns()
    Kernels.normalize(
      hidden + token * shape.width, gain: weights.finalGain, epsilon: shape.epsilon,
      count: shape.width, into: normed)
    multiply(weights.head, normed, 1, into: logitStore)
    projectionNs += chost_thread_cpu_ns() - beganNs
  }

  /// Puts logits back that another cache has overwritten.
  func restore(logits: [Float]) {
    for (index, logit) in logits.enumerated() { logitStore[index] = logit }
  }

  private func multiply(
    _ matrix: Matrix, _ input: UnsafePointer<Float>, _ count: Int,
    into out: UnsafeMutablePointer<Float>, adding: Bool = false
  ) {
    Kernels.multiply(matrix, input, count: count, into: out, scratch: row, adding: adding)
  }

  private func normalize(_ count: Int, _ gain: UnsafePointer<Float>) {
    for token in 0..<count {
      let offset = token * shape.width
      Kernels.normalize(
        hidden + offset, gain: gain, epsilon: shape.epsilon, count: shape.width,
        into: normed + offset)
    }
  }

  /// Rotates queries and keys to their positions and writes the new rows.
  private func writeRows(_ layer: Int, _ count: Int, _ start: Int, _ cache: CacheView) {
    let headWidth = shape.headWidth
    for token in 0..<count {
      let row = start + token
      for head in 0..<shape.heads {
        rotate(queries + (token * shape.heads + head) * headWidth, row)
      }
      for head in 0..<shape.kvHeads {
        let source = (token * shape.kvHeads + head) * headWidth
        rotate(keys + source, row)
        let place = cache.offset(layer: layer, head: head, row: row)
        for index in 0..<headWidth {
          cache.keys[place + index] = HalfFloat.narrow(keys[source + index])
          cache.values[place + index] = HalfFloat.narrow(values[source + index])
        }
      }
    }
  }

  /// RoPE on halves of a head: `(a, b)` becomes `(a cos - b sin, b cos + a sin)`.
  private func rotate(_ head: UnsafeMutablePointer<Float>, _ row: Int) {
    let half = shape.headWidth / 2
    let (cosines, sines) = (
      weights.cosines + row * shape.headWidth, weights.sines + row * shape.headWidth
    )
    for index in 0..<half {
      let (a, b) = (head[index], head[half + index])
      head[index] = a * cosines[index] - b * sines[index]
      head[half + index] = b * cosines[half + index] + a * sines[half + index]
    }
  }

  private func attend(
    _ layer: Int, _ token: Int, _ start: Int, _ cache: CacheView, _ visibility: Visibility
  ) {
    let group = shape.heads / shape.kvHeads
    for head in 0..<shape.heads {
      let query = queries + (token * shape.heads + head) * shape.headWidth
      let first = cache.offset(layer: layer, head: head / group, row: 0)
      let keys = UnsafePointer(cache.keys + first)
      let values = UnsafePointer(cache.values + first)
      let rows = score(query, keys, token, start, visibility)
      Kernels.softmax(scores, count: rows)
      let out = mixed + (token * shape.heads + head) * shape.headWidth
      out.update(repeating: 0, count: shape.headWidth)
      for row in 0..<rows {
        Kernels.add(scores[row], values + row &* shape.headWidth, to: out, shape.headWidth)
      }
    }
  }

  /// Fills `scores` and returns how many rows count.
  private func score(
    _ query: UnsafePointer<Float>, _ keys: UnsafePointer<UInt16>, _ token: Int, _ start: Int,
    _ visibility: Visibility
  ) -> Int {
    let scale = 1 / Float(shape.headWidth).squareRoot()
    let width = shape.headWidth
    switch visibility {
    case .causal:
      for row in 0...start + token {
        scores[row] = Kernels.dot(query, keys + row &* width, width) * scale
      }
      return start + token + 1
    case .mask(let mask):
      for row in 0..<shape.length {
        scores[row] =
          Kernels.dot(query, keys + row &* width, width) * scale
          + HalfFloat.widen(mask[token * shape.length + row])
      }
      return shape.length
    }
  }
}
