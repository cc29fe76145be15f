// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// Sizes of a decoder-only model: RMSNorm, grouped-query attention, RoPE, SwiGLU.
public struct DecoderShape: Sendable, Equatable {
  /// How the matrices of the layers are stored; embedding, head and tables are always halves.
  public enum Storage: String, CaseIterable, Sendable {
    /// 4-bit indices into a palette of 16 for each 16 rows.
    case lut4
    /// Bytes with a scale per row.
    case int8
    /// 4-bit integers with a scale per 32 columns.
    case int4
    /// Halves.
    case fp16
  }

  /// Layers of the model.
  public var layers: Int
  /// Width of the hidden values; a multiple of 32.
  public var width: Int
  /// Query heads.
  public var heads: Int
  /// Key and value heads.
  public var kvHeads: Int
  /// Width of a head; a multiple of 32.
  public var headWidth: Int
  /// Width of the feed-forward; a multiple of 32.
  public var inner: Int
  /// Ids lie under this one.
  public var vocabularySize: Int
  /// Rows of the cache.
  public var length: Int
  /// How the matrices are stored.
  public var storage: Storage
  /// Widest prefill chunk.
  public var chunk: Int
  /// Added to the mean square before the root.
  public var epsilon: Float
  /// Whether keys and values are one state with layer l at 2l and 2l + 1.
  public var isJoint: Bool

  /// Bytes of the whole cache.
  public var cacheBytes: Int { 2 * MemoryLayout<UInt16>.size * cacheElements }
  /// Keys of the cache; as many values.
  public var cacheElements: Int { layers * kvHeads * length * headWidth }

  /// Multiplications and additions of one token's projections, the head left out.
  public var layerOperations: Int {
    let attention = 2 * width * headWidth * (heads + kvHeads)
    return 2 * layers * (attention + 3 * width * inner)
  }

  /// Multiplications and additions of the head.
  public var headOperations: Int { 2 * vocabularySize * width }

  /// Multiplications and additions of one token's attention over `rows` rows.
  public func attentionOperations(rows: Int) -> Int { 4 * layers * heads * headWidth * rows }

  private static let mostRows = 1 << 20

  /// Reads the recipe that the model kit writes into a file's notes.
  ///
  /// - Parameter metadata: The notes of a `safetensors` file; a string under `fleet.recipe`.
  /// - Throws: `JSONError` naming the field that is wrong.
  public init(metadata: JSONFields) throws(JSONError) {
    let text = try metadata.string("fleet.recipe")
    try self.init(recipe: try JSONFields(try JSONReader.read(text.utf8), at: "fleet.recipe"))
  }

  /// Reads a recipe of the model kit.
  ///
  /// - Parameter fields: The recipe.
  /// - Throws: `JSONError` naming the field that is wrong.
  public init(recipe fields: JSONFields) throws(JSONError) {
    layers = try fields.integer("layers", in: 1...1024)
    width = try Self.vectors(fields, "width")
    heads = try fields.integer("heads", in: 1...1024)
    kvHeads = try fields.integer("kv_heads", in: 1...1024)
    headWidth = try Self.vectors(fields, "head_dim")
    inner = try Self.vectors(fields, "inner")
    vocabularySize = try fields.integer("vocab", in: 1...Self.mostRows)
    length = try fields.integer("length", in: 2...Self.mostRows)
    storage = try fields.choice("weights", Storage.self)
    chunk = try fields.integer("chunk", in: 1...length)
    epsilon = Float(try fields.positive("epsilon"))
    isJoint = try fields.string("states") == "joint"
    guard heads % kvHeads == 0 else {
      throw .field(path: fields.path(of: "heads"), expected: "a multiple of kv_heads")
    }
  }

  private static func vectors(_ fields: JSONFields, _ name: String) throws(JSONError) -> Int {
    let size = try fields.integer(name, in: 32...65_536)
    guard size % 32 == 0 else {
      throw .field(path: fields.path(of: name), expected: "a multiple of 32")
    }
    return size
  }
}
