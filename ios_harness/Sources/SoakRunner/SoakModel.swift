// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// What a soak has to know of a model before it is loaded. Bytes are phone bytes.
public struct ModelFacts: Sendable {
  /// A word for records: `witness`, `reference`, `coreml`.
  public var engine: String
  /// How the weights are stored.
  public var quantization: Quantization
  /// Read back from the package.
  public var bitsPerWeight: Int
  /// Bytes of the weights.
  public var weightsBytes: Int
  /// Most rows of a state set.
  public var capacity: Int
  /// Ids lie under this one.
  public var vocabularySize: Int
  /// The lowest id that a scheduled prompt may hold.
  public var firstID: Token
  /// Ids that end a turn.
  public var endIDs: [Token]
  /// Begins a conversation, if the model has such an id.
  public var bosID: Token?
  /// Widths of prefill chunks; the last is the widest.
  public var chunkWidths: [Int]
  /// A word for records: `decimal`, `pieces`, `table`.
  public var textName: String
  /// Turns ids into text.
  public var text: any TokenText

  /// - Parameters:
  ///   - engine: `witness`, `reference` or `coreml`.
  ///   - quantization: How the weights are stored.
  ///   - bitsPerWeight: Read back from the package.
  ///   - weightsBytes: Bytes of the weights.
  ///   - capacity: Most rows of a state set.
  ///   - vocabularySize: Ids lie under this one.
  ///   - firstID: The lowest id that a scheduled prompt may hold.
  ///   - endIDs: Ids that end a turn, at least one.
  ///   - bosID: Begins a conversation, if the model has such an id.
  ///   - chunkWidths: Widths of prefill chunks, at least one; the last is the widest.
  ///   - textName: `decimal`, `pieces` or `table`.
  ///   - text: Turns ids into text.
  public init(
    engine: String, quantization: Quantization, bitsPerWeight: Int, weightsBytes: Int,
    capacity: Int, vocabularySize: Int, firstID: Token, endIDs: [Token], bosID: Token?,
    chunkWidths: [Int], textName: String, text: any TokenText
  ) {
    self.engine = engine
    self.quantization = quantization
    self.bitsPerWeight = bitsPerWeight
    self.weightsBytes = weightsBytes
    self.capacity = capacity
    self.vocabularySize = vocabularySize
    self.firstID = firstID
    self.endIDs = endIDs
    self.bosID = bosID
    self.chunkWidths = chunkWidths
    self.textName = textName
    self.text = text
  }

  /// Widest prefill chunk.
  public var chunk: Int { chunkWidths.last ?? 1 }
}

/// What a load needs beside the package. Engines take what they can use of it.
public struct LoadOrder {
  /// Phone bytes of one host byte; 1 on a real phone.
  public let memoryScale: Int
  /// The set speed of engines that have one.
  public let speed: EngineSpeed
  /// Share of the set speed that a prediction has now.
  public let speedShare: @Sendable () -> Double
  /// The host's number for this launch.
  public let nonce: UInt64
  /// E of the contract.
  public let endEvery: UInt64
  /// How a token is picked from logits.
  public let sampling: SamplingSetting
  /// Whether an earlier launch has loaded this model on this phone.
  public let wasLoaded: Bool
  /// Failures on purpose.
  public let faults: [ScriptedFault]
  /// The launch's clock.
  public let clock: LaunchClock
  /// Writes a breadcrumb before an engine does something that a process may die of: `load`, `predict`, `state`.
  public let willDo: (_ about: String, _ detail: String) -> Void
}

/// A model that was loaded. The engine belongs to the thread that loaded it.
public struct LoadedModel {
  /// Runs the model.
  public let engine: any InferenceEngine
  /// What the load found.
  public let load: ModelLoad

  /// - Parameters:
  ///   - engine: Runs the model.
  ///   - load: What the load found.
  public init(engine: any InferenceEngine, load: ModelLoad) {
    self.engine = engine
    self.load = load
  }
}

/// A package in the app's container that was read and found to be what it is listed as.
public protocol SoakModel: Sendable {
  /// What it says of itself.
  var facts: ModelFacts { get }
  /// Says whether its engine can sample so.
  func supports(_ sampling: SamplingSetting) -> Bool
  /// Loads it, on the thread that will own the engine.
  func load(_ order: LoadOrder) throws -> LoadedModel
}

/// Reads a package.
///
/// - Parameters:
///   - folder: Where it lies.
///   - digest: 64 hexadecimal digits that its content must have.
/// - Returns: nil when the content has another digest.
public typealias ModelReader =
  @Sendable (_ folder: String, _ digest: String) throws -> (any SoakModel)?

/// The witness: a synthetic engine whose tokens prove their context.
struct WitnessSoakModel: SoakModel {
  let model: WitnessModel

  private static let largestFileBytes = 64 * 1024

  /// Reads `model.json`; see `ModelReader`.
  static func read(folder: String, digest: String) throws -> (any SoakModel)? {
    let bytes = try Files.read("\(folder)/model.json", limitBytes: largestFileBytes)
    guard SHA256.hexadecimal(of: bytes) == digest else { return nil }
    return WitnessSoakModel(model: try WitnessModel(json: bytes))
  }

  var facts: ModelFacts {
    ModelFacts(
      engine: "witness", quantization: model.quantization, bitsPerWeight: model.bitsPerWeight,
      weightsBytes: model.weightsBytes, capacity: model.capacity,
      vocabularySize: model.vocabularySize, firstID: model.firstID, endIDs: [model.endID],
      bosID: model.bosID, chunkWidths: [model.chunk], textName: model.text.rawValue,
      text: model.text.table)
  }

  func supports(_ sampling: SamplingSetting) -> Bool { sampling == .greedy }

  func load(_ order: LoadOrder) throws -> LoadedModel {
    let engine = try WitnessEngine(
      model: model,
      setting: WitnessEngine.Setting(
        memoryScale: order.memoryScale, speed: order.speed, nonce: order.nonce,
        endEvery: order.endEvery, clock: order.clock, faults: order.faults,
        speedShare: order.speedShare))
    return LoadedModel(engine: engine, load: engine.modelLoad(isCold: !order.wasLoaded))
  }
}
