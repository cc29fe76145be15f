// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation
import ReferenceEngine
import StreamingLM

/// What Core ML is about to do: written down first, because a process that dies in it leaves nothing else.
///
/// A model whose Neural Engine compilation failed may load and then kill the process at its first prediction, without a
/// crash report (coremltools issue 2758).
public enum CoreMLAct: String, Sendable {
  /// A model is loaded.
  case load
  /// The first prediction after loading.
  case predict
  /// A state set is made.
  case state
  /// The model is loaded again.
  case reload
}

/// A decoder of the model kit behind Core ML: `MLModel` with `MLState`, or with the cache as features, or with neither.
///
/// It calls the synchronous prediction on the thread of its owner, each call inside an autorelease pool: in an `async`
/// task, whose pool may not drain for minutes, each prediction would leave IOSurfaces behind until the process has no
/// more. One owner, one thread; a second prediction while one runs is refused, because Core ML leaves it undefined.
public final class CoreMLEngine: InferenceEngine {
  /// How the models are loaded.
  public struct Setting: Sendable {
    /// Processors the models prefer. It is a preference: where it really runs, the compute plan says.
    public var units: MLComputeUnits
    /// When the model is loaded again for the sake of its surfaces.
    public var ledger: SurfaceLedger

    /// - Parameters:
    ///   - units: Processors the models prefer; `.all` as Apple advises.
    ///   - ledger: When the model is loaded again.
    public init(units: MLComputeUnits = .all, ledger: SurfaceLedger = SurfaceLedger()) {
      self.units = units
      self.ledger = ledger
    }
  }

  /// Whether one state serves both functions, as the probe after loading found.
  public private(set) var sharing: StateSharing
  /// Surfaces counted since the model was loaded.
  public private(set) var ledger: SurfaceLedger
  /// Times the model was loaded again.
  public private(set) var reloads = 0
  /// The logits of the last prediction, [vocabulary]; valid until the next one.
  public let logits: UnsafeBufferPointer<Float>

  private let files: [CoreMLStageFiles]
  private let units: MLComputeUnits
  private let willDo: (CoreMLAct, String) -> Void
  private let lock = NSLock()
  private let logitStore: UnsafeMutableBufferPointer<Float>
  private var model: CoreMLModel?
  private var memories: [StageMemory]?
  private var consumed: [Token] = []
  private var hasLogits = false
  private var hasPredicted = false

  /// Loads the models, checks their features and probes whether they share states.
  ///
  /// - Parameters:
  ///   - files: Compiled models, in the order of the layers.
  ///   - setting: How they are loaded.
  ///   - willDo: Called before each dangerous act with a word on what it is about; write it down and sync it.
  /// - Throws: `CoreMLError`.
  public init(
    files: [CoreMLStageFiles], setting: Setting = Setting(),
    willDo: @escaping (CoreMLAct, String) -> Void = { _, _ in }
  ) throws(CoreMLError) {
    self.files = files
    self.willDo = willDo
    units = setting.units
    ledger = setting.ledger
    willDo(.load, "\(setting.units)")
    let model = try CoreMLModel(files, units: setting.units)
    willDo(.predict, "probe of a shared state")
    sharing = try SharingProbe.run(model)
    self.model = model
    (capacity, stateBytes, widths) = (model.length, model.stateBytes, model.widths)
    logitStore = .allocate(capacity: model.vocabularySize)
    logitStore.initialize(repeating: 0)
    logits = UnsafeBufferPointer(logitStore)
  }

  deinit { logitStore.deallocate() }

  /// Most rows of a state set.
  public let capacity: Int
  /// Bytes of one state set; with states of which one is a copy, twice as much is in memory.
  public let stateBytes: Int
  /// Tokens of one prediction that the model offers, narrowest first.
  public let widths: [Int]

  /// Whether the model should be loaded again: announce it to the context window, which feeds all of the context again.
  public var wantsReload: Bool { ledger.isDue }

  /// Makes the states and touches them; loads the model again first where that is due, because a state is bound to the
  /// model that made it.
  public func makeState(for purpose: StatePurpose) throws(EngineError) {
    if memories != nil { throw .state(expected: "no state set") }
    do throws(CoreMLError) {
      if ledger.isDue { try reload() }
      guard let model else { throw .load("the model is gone") }
      willDo(.state, "\(purpose)")
      memories = try model.makeMemories(isShared: sharing != .copied)
    } catch { throw error.engineError }
    consumed = []
    hasLogits = false
  }

  /// Drops the states; their memory goes with the last reference.
  public func releaseState(for purpose: StatePurpose) {
    autoreleasepool { memories = nil }
    consumed = []
    hasLogits = false
  }

  /// Consumes the chunk in as many predictions as the widths of the model need.
  public func predict(_ chunk: Chunk) throws(EngineError) {
    guard lock.try() else { throw .overlap }
    defer { lock.unlock() }
    guard let model, let memories else { throw .state(expected: "a state set") }
    if chunk.end > capacity { throw .capacity(needed: chunk.end, available: capacity) }
    guard chunk.start == consumed.count else {
      throw .state(expected: "\(consumed.count) rows before the chunk")
    }
    if !hasPredicted { willDo(.predict, "\(chunk.purpose)") }
    hasPredicted = true
    do throws(CoreMLError) {
      try run(chunk, model, memories)
    } catch {
      if case .surfaces = error { ledger.ranOut() }
      throw error.engineError
    }
    consumed += chunk.ids
  }

  /// The id with the highest logit, the lowest of them on a tie (contract R11).
  public func sample() throws(EngineError) -> Token {
    guard hasLogits else { throw .state(expected: "a state set with rows") }
    return try Greedy.token(logits)
  }

  private func run(
    _ chunk: Chunk, _ model: CoreMLModel, _ memories: [StageMemory]
  ) throws(CoreMLError) {
    var (ids, start) = (chunk.ids, chunk.start)
    if case .none = model.memory { (ids, start) = (consumed + chunk.ids, 0) }
    let pieces = PredictionPiece.cut(
      count: ids.count, start: start, widths: widths, length: capacity)
    if pieces.isEmpty { throw .prediction("no width of \(widths) fits row \(start)") }
    for piece in pieces {
      let (array, unbacked) = try model.predict(
        ids[piece.ids], start: piece.start, width: piece.width, memories)
      ledger.predicted(unbacked: unbacked)
      if piece.ids.upperBound == ids.count { try array.copyHalves(into: logitStore) }
    }
    hasLogits = true
  }

  /// Old model out before the new one comes in: two at once may not fit.
  private func reload() throws(CoreMLError) {
    willDo(.reload, "\(ledger.surfaces) surfaces")
    autoreleasepool { model = nil }
    let fresh = try CoreMLModel(files, units: units)
    hasPredicted = false
    willDo(.predict, "probe of a shared state")
    sharing = try SharingProbe.run(fresh)
    model = fresh
    ledger.reloaded()
    reloads += 1
  }
}
