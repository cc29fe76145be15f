// SPDX-License-Identifier: Apache-2.0

import SoakRunner
import StreamingLM

/// What a customer's app says of itself and its model.
public struct ProbeApp: Sendable {
  /// Name of the app.
  public var name: String
  /// Version of the app.
  public var version: String
  /// B, the most rows that the app lets its context have.
  public var budgetTokens: Int
  /// The model; its engine's name is `custom`.
  public var facts: ModelFacts
  /// 64 hexadecimal digits that name the model's files.
  public var digest: String

  /// - Parameters:
  ///   - name: Name of the app.
  ///   - version: Its version.
  ///   - budgetTokens: The most rows that the app lets its context have.
  ///   - model: The model.
  public init(name: String, version: String, budgetTokens: Int, model: ProbeModel) {
    self.name = name
    self.version = version
    self.budgetTokens = budgetTokens
    facts = model.facts
    digest = model.digest
  }
}

/// The model of a customer's app.
public struct ProbeModel: Sendable {
  /// 64 hexadecimal digits that name the model's files; zeros when the app does not say.
  public var digest = String(repeating: "0", count: 64)
  /// How the weights are stored.
  public var quantization: Quantization
  /// Bytes of the weights.
  public var weightsBytes: Int
  /// Most rows of a state set.
  public var capacity: Int
  /// Ids lie under this one.
  public var vocabularySize: Int
  /// Ids that end a turn, at least one.
  public var endIDs: [Token]
  /// The lowest id that a scheduled prompt may hold.
  public var firstID: Token = 1
  /// Begins a conversation, if the model has such an id.
  public var bosID: Token?
  /// Widest prefill chunk.
  public var chunk: Int
  /// Turns ids into text.
  public var text: any TokenText = DecimalText()

  /// - Parameters:
  ///   - quantization: How the weights are stored.
  ///   - weightsBytes: Bytes of the weights.
  ///   - capacity: Most rows of a state set.
  ///   - vocabularySize: Ids lie under this one.
  ///   - endIDs: Ids that end a turn, at least one.
  ///   - chunk: Widest prefill chunk.
  public init(
    quantization: Quantization, weightsBytes: Int, capacity: Int, vocabularySize: Int,
    endIDs: [Token], chunk: Int
  ) {
    self.quantization = quantization
    self.weightsBytes = weightsBytes
    self.capacity = capacity
    self.vocabularySize = vocabularySize
    self.endIDs = endIDs
    self.chunk = chunk
  }

  var facts: ModelFacts {
    ModelFacts(
      engine: "custom", quantization: quantization,
      bitsPerWeight: quantization == .int4 ? 4 : 8, weightsBytes: weightsBytes,
      capacity: capacity, vocabularySize: vocabularySize, firstID: firstID, endIDs: endIDs,
      bosID: bosID, chunkWidths: [chunk], textName: "decimal", text: text)
  }
}
