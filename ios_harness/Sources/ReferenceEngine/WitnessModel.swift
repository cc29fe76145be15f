// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// `model.json` of a witness package: what a model of this size would cost. Bytes are phone bytes.
public struct WitnessModel: Sendable, Equatable {
  /// How the weights are stored.
  public let quantization: Quantization
  /// 4 or 8.
  public let bitsPerWeight: Int
  /// Bytes of the weights.
  public let weightsBytes: Int
  /// Bytes of one row of the state set.
  public let rowBytes: Int
  /// Most rows of a state set.
  public let capacity: Int
  /// Ids lie under this one.
  public let vocabularySize: Int
  /// The lowest id that is no special token.
  public let firstID: Token
  /// The end token.
  public let endID: Token
  /// Begins a conversation, if the model has such an id.
  public let bosID: Token?
  /// Widest prefill chunk.
  public let chunk: Int
  /// Which text an id has.
  public let text: Text
  /// How long a load takes.
  public let loadMs: Int
  /// What a compute plan of the model would say.
  public let computePlan: [ModelLoad.Placement]

  /// The text of a witness, by its name in records.
  public enum Text: String, Sendable, CaseIterable {
    /// Decimal digits.
    case decimal
    /// Letters and parts of characters.
    case pieces

    /// Turns ids into bytes.
    public var table: any TokenText {
      switch self {
      case .decimal: DecimalText()
      case .pieces: PieceText()
      }
    }
  }

  /// Bytes of one state set.
  public var stateBytes: Int { rowBytes * capacity }

  /// Most bytes a package may ask for: far over any phone, far under what overflows.
  private static let mostBytes = 1 << 50
  private static let mostRows = 1 << 20
  private static let longestLoadMs = 600_000

  /// Reads `model.json`.
  ///
  /// - Parameter json: The file's bytes.
  /// - Throws: `JSONError` naming the field that is wrong.
  public init(json: [UInt8]) throws(JSONError) {
    let fields = try JSONFields(try JSONReader.read(json), at: "model")
    let kind = try fields.string("kind")
    guard kind == "witness" else { throw .field(path: "model.kind", expected: "witness") }
    quantization = try fields.choice("quantization", Quantization.self)
    bitsPerWeight = try fields.integer("bits_per_weight", in: 1...32)
    weightsBytes = try fields.integer("weights_bytes", in: 0...Self.mostBytes)
    rowBytes = try fields.integer("kv_row_bytes", in: 1...Self.mostRows)
    capacity = try fields.integer("capacity", in: 2...Self.mostRows)
    vocabularySize = try fields.integer("vocab", in: 2...Int(Token.max))
    firstID = Token(try fields.integer("first_id", in: 0...vocabularySize - 1))
    endID = Token(try fields.integer("end_id", in: 0...vocabularySize - 1))
    bosID = try fields.optionalInteger("bos_id", in: 0...vocabularySize - 1).map(Token.init)
    chunk = try fields.integer("chunk", in: 1...capacity)
    text = try fields.isNull("text") ? .decimal : fields.choice("text", Text.self)
    loadMs = try fields.optionalInteger("load_ms", in: 0...Self.longestLoadMs) ?? 0
    computePlan = try fields.isNull("compute_plan") ? [] : Self.plan(fields)
  }

  private enum Device: String, CaseIterable {
    case neuralEngine = "neural_engine"
    case gpu, cpu
  }

  private static func plan(_ fields: JSONFields) throws(JSONError) -> [ModelLoad.Placement] {
    var plan: [ModelLoad.Placement] = []
    for entry in try fields.objects("compute_plan") {
      plan.append(
        ModelLoad.Placement(
          group: try entry.string("group"),
          device: try entry.choice("device", Device.self).rawValue,
          operationCount: try entry.integer("ops")))
    }
    return plan
  }

  /// The ids to sample from, with E of the contract from the scenario.
  public func vocabulary(endEvery: UInt64) -> WitnessVocabulary {
    WitnessVocabulary(size: vocabularySize, firstID: firstID, endID: endID, endEvery: endEvery)
  }
}
