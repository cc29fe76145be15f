// SPDX-License-Identifier: Apache-2.0

import CHost
import StreamingLM

/// Mapped memory for numbers: it comes zeroed and is given back at once.
final class MappedArray<Element: BitwiseCopyable> {
  let start: UnsafeMutablePointer<Element>
  let count: Int

  /// - Throws: `EngineError.memory` when the system gives none.
  init(count: Int) throws(EngineError) {
    let bytes = max(1, count) * MemoryLayout<Element>.stride
    guard let raw = chost_map(Int64(bytes)) else { throw .memory(bytes: bytes) }
    start = raw.bindMemory(to: Element.self, capacity: count)
    self.count = count
  }

  deinit { chost_unmap(start, Int64(max(1, count) * MemoryLayout<Element>.stride)) }
}

/// A matrix of weights as finite halves, rows one after another.
struct Matrix {
  let values: UnsafePointer<UInt16>
  let rows: Int
  let columns: Int
}

/// The weights of one layer.
struct LayerWeights {
  let attentionGain: UnsafePointer<Float>
  let innerGain: UnsafePointer<Float>
  let queries: Matrix
  let keys: Matrix
  let values: Matrix
  let output: Matrix
  let gate: Matrix
  let up: Matrix
  let down: Matrix
}

/// The weights of a decoder, expanded to halves as Core ML expands them: palettes and scales are halves, and so is their
/// product. They are widened in registers: twice the bytes would not stay in the caches beside keys and values.
///
/// Unchecked: nothing is written once it is made.
public final class DecoderWeights: @unchecked Sendable {
  /// Sizes of the model.
  public let shape: DecoderShape
  let embedding: Matrix
  let head: Matrix
  let finalGain: UnsafePointer<Float>
  /// [length, head width]; both halves of a row are equal.
  let cosines: UnsafePointer<Float>
  let sines: UnsafePointer<Float>
  let layers: [LayerWeights]
  private let matrices: MappedArray<UInt16>
  private let vectors: MappedArray<Float>

  /// Bytes of the expanded weights.
  public var byteCount: Int {
    matrices.count * MemoryLayout<UInt16>.stride + vectors.count * MemoryLayout<Float>.stride
  }

  /// - Parameter path: A `weights.safetensors` of the model kit.
  /// - Throws: `SystemError`, `WeightsError` or `EngineError`.
  public convenience init(path: String) throws {
    try self.init(file: try SafetensorsFile(path: path))
  }

  /// - Parameter file: Weights of the model kit.
  /// - Throws: `WeightsError` or `EngineError`.
  public init(file: SafetensorsFile) throws {
    let shape: DecoderShape
    do { shape = try DecoderShape(metadata: file.metadata) } catch {
      throw WeightsError.header(error)
    }
    self.shape = shape
    (matrices, vectors) = try Self.memory(for: shape)
    var expander = WeightExpander(
      file: file, shape: shape, next: matrices.start, nextVector: vectors.start)
    embedding = try expander.table("embed_tokens", shape.vocabularySize, shape.width)
    cosines = try expander.vectors("rope_cos", [shape.length, shape.headWidth])
    sines = try expander.vectors("rope_sin", [shape.length, shape.headWidth])
    layers = try (0..<shape.layers).map { try expander.layer($0) }
    finalGain = try expander.gain("ln_f")
    head = try expander.table("lm_head", shape.vocabularySize, shape.width)
  }

  private static func memory(
    for shape: DecoderShape
  ) throws(EngineError) -> (MappedArray<UInt16>, MappedArray<Float>) {
    let projections = 2 * shape.width * shape.headWidth * (shape.heads + shape.kvHeads)
    let layer = projections + 3 * shape.width * shape.inner
    let matrices = 2 * shape.vocabularySize * shape.width + shape.layers * layer
    let gains = (2 * shape.layers + 1) * shape.width
    let vectors = 2 * shape.length * shape.headWidth + gains
    return (try MappedArray(count: matrices), try MappedArray(count: vectors))
  }
}

/// Writes expanded weights one after another.
private struct WeightExpander {
  let file: SafetensorsFile
  let shape: DecoderShape
  var next: UnsafeMutablePointer<UInt16>
  var nextVector: UnsafeMutablePointer<Float>

  /// Rows that share one palette, and columns that share one scale of 4-bit integers.
  private static let groupRows = 16
  private static let blockColumns = 32

  mutating func table(_ name: String, _ rows: Int, _ columns: Int) throws(WeightsError) -> Matrix {
    let halves = try file.halves(name, [rows, columns])
    return try take(name, rows, columns) { halves[$0 * columns + $1] }
  }

  mutating func gain(_ name: String) throws(WeightsError) -> UnsafePointer<Float> {
    try vectors(name, [shape.width])
  }

  /// Numbers that are no factors of a product by rows: they are few and stay single.
  mutating func vectors(
    _ name: String, _ sizes: [Int]
  ) throws(WeightsError) -> UnsafePointer<Float> {
    let halves = try file.halves(name, sizes)
    let start = nextVector
    for half in halves {
      nextVector.pointee = HalfFloat.widen(half)
      nextVector += 1
    }
    return UnsafePointer(start)
  }

  mutating func layer(_ number: Int) throws(WeightsError) -> LayerWeights {
    let (width, inner) = (shape.width, shape.inner)
    let (queries, keys) = (shape.heads * shape.headWidth, shape.kvHeads * shape.headWidth)
    let prefix = "l\(number)_"
    return LayerWeights(
      attentionGain: try gain(prefix + "ln1"), innerGain: try gain(prefix + "ln2"),
      queries: try matrix(prefix + "q", queries, width),
      keys: try matrix(prefix + "k", keys, width),
      values: try matrix(prefix + "v", keys, width),
      output: try matrix(prefix + "o", width, queries),
      gate: try matrix(prefix + "gate", inner, width), up: try matrix(prefix + "up", inner, width),
      down: try matrix(prefix + "down", width, inner))
  }

  private mutating func matrix(
    _ name: String, _ rows: Int, _ columns: Int
  ) throws(WeightsError) -> Matrix {
    switch shape.storage {
    case .fp16: try table(name, rows, columns)
    case .lut4: try palettes(name, rows, columns)
    case .int8: try integers(name, rows, columns, blocks: 1)
    case .int4: try integers(name, rows, columns, blocks: columns / Self.blockColumns)
    }
  }

  private mutating func palettes(
    _ name: String, _ rows: Int, _ columns: Int
  ) throws(WeightsError) -> Matrix {
    let indices = try file.bytes("\(name).indices", .uint8, [rows, columns / 2])
    let palettes = try file.halves("\(name).palettes", [rows / Self.groupRows, 16])
    return try take(name, rows, columns) { row, column in
      let index = Self.nibble(indices, row * columns + column)
      return palettes[row / Self.groupRows * 16 + Int(index)]
    }
  }

  private mutating func integers(
    _ name: String, _ rows: Int, _ columns: Int, blocks: Int
  ) throws(WeightsError) -> Matrix {
    let scales = try file.halves("\(name).scales", [rows, blocks])
    let isPacked = shape.storage == .int4
    let stored = try file.bytes(
      "\(name).integers", isPacked ? .uint8 : .int8, [rows, isPacked ? columns / 2 : columns])
    return try take(name, rows, columns) { row, column in
      let place = row * columns + column
      let integer =
        isPacked
        ? Int8(bitPattern: Self.nibble(stored, place) << 4) >> 4
        : Int8(bitPattern: stored[stored.startIndex + place])
      let scale = HalfFloat.widen(scales[row * blocks + column * blocks / columns])
      return HalfFloat.narrow(Float(integer) * scale)
    }
  }

  /// A value of 4 bits; the even one is in the low bits.
  private static func nibble(_ bytes: ArraySlice<UInt8>, _ place: Int) -> UInt8 {
    let byte = bytes[bytes.startIndex + place / 2]
    return place % 2 == 0 ? byte & 15 : byte >> 4
  }

  private mutating func take(
    _ name: String, _ rows: Int, _ columns: Int, _ half: (_ row: Int, _ column: Int) -> UInt16
  ) throws(WeightsError) -> Matrix {
    let matrix = Matrix(values: next, rows: rows, columns: columns)
    for row in 0..<rows {
      for column in 0..<columns {
        let bits = half(row, column)
        // The product takes them for finite: a model with others is broken.
        if bits & 0x7C00 == 0x7C00 { throw .tensor(name, expected: "finite numbers") }
        next[row * columns + column] = bits
      }
    }
    next += rows * columns
    return matrix
  }
}
