// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation
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
public final class CoreMLEngine: AuditingEngine {
  /// How the models are loaded.
  public struct Setting: Sendable {
    /// Processors the models prefer. It is a preference: where it really runs, the compute plan says.
    public var units: MLComputeUnits
    /// When the model is loaded again for the sake of its surfaces.
    public var ledger: SurfaceLedger
    /// How a token is picked from the logits.
    public var sampling: SamplingSetting
    /// What the compute plan says, for records.
    public var placement: [ModelLoad.Placement]

    /// - Parameters:
    ///   - units: Processors the models prefer; `.all` as Apple advises.
    ///   - ledger: When the model is loaded again.
    ///   - sampling: How a token is picked from the logits.
    ///   - placement: What the compute plan says, for records.
    public init(
      units: MLComputeUnits = .all, ledger: SurfaceLedger = SurfaceLedger(),
      sampling: SamplingSetting = .greedy, placement: [ModelLoad.Placement] = []
    ) {
      self.units = units
      self.ledger = ledger
      self.sampling = sampling
      self.placement = placement
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
  private let setting: Setting
  private let willDo: (CoreMLAct, String) -> Void
  private let lock = NSLock()
  private let logitStore: UnsafeMutableBufferPointer<Float>
  private var model: CoreMLModel?
  private var memories: [StageMemory]?
  private var consumed: [Token] = []
  private var hasLogits = false
  private var hasPredicted = false
  private var sampler: Sampler
  private var audit: Audit?

  /// A second state set beside the one in use, and the logits of the last prediction in use.
  private struct Audit {
    let memories: [StageMemory]
    let used: [Float]
    var consumed: [Token] = []
  }

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
    self.setting = setting
    sampler = Sampler(setting.sampling)
    ledger = setting.ledger
    willDo(.load, setting.units.name)
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

  /// What the ledger has counted.
  public var surfaceCount: Int { ledger.surfaces }

  /// Makes the states and touches them; loads the model again first where that is due, because a state is bound to the
  /// model that made it.
  public func makeState(for purpose: StatePurpose) throws(EngineError) {
    if memories != nil { throw .state(expected: "no state set") }
    do throws(CoreMLError) {
      if ledger.isDue { try loadAgain() }
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
    try run(chunk, after: consumed, model, memories)
    hasLogits = true
    consumed += chunk.ids
  }

  /// Picks a token from the logits (contract R11).
  public func sample() throws(EngineError) -> Token {
    guard hasLogits else { throw .state(expected: "a state set with rows") }
    return try sampler.pick(logits)
  }

  private func run(
    _ chunk: Chunk, after consumed: [Token], _ model: CoreMLModel, _ memories: [StageMemory]
  ) throws(EngineError) {
    do throws(CoreMLError) {
      try feed(chunk, after: consumed, model, memories)
    } catch {
      if case .surfaces = error { ledger.ranOut() }
      throw error.engineError
    }
  }

  private func feed(
    _ chunk: Chunk, after consumed: [Token], _ model: CoreMLModel, _ memories: [StageMemory]
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
  }

  /// Old model out before the new one comes in: two at once may not fit.
  private func loadAgain() throws(CoreMLError) {
    willDo(.reload, "\(ledger.surfaces) surfaces")
    autoreleasepool { model = nil }
    let fresh = try CoreMLModel(files, units: setting.units)
    hasPredicted = false
    willDo(.predict, "probe of a shared state")
    sharing = try SharingProbe.run(fresh)
    model = fresh
    ledger.reloaded()
    reloads += 1
  }
}

extension CoreMLEngine {
  /// Loads the model again (contract R9); called without a state set.
  public func reload() throws(EngineError) -> ModelLoad {
    if memories != nil { throw .state(expected: "no state set") }
    do throws(CoreMLError) { try loadAgain() } catch { throw error.engineError }
    return modelLoad(isCold: false)
  }

  /// What a load found, for its record.
  ///
  /// - Parameter isCold: Whether the packages had to be compiled first.
  /// - Returns: Processors asked for and placement.
  public func modelLoad(isCold: Bool) -> ModelLoad {
    ModelLoad(computeUnits: setting.units.name, plan: setting.placement, isCold: isCold)
  }

  /// Makes a second state set; the one in use is not touched.
  public func beginAudit() throws(EngineError) {
    guard let model, memories != nil, hasLogits else {
      throw .state(expected: "a state set with rows")
    }
    willDo(.state, "audit")
    do throws(CoreMLError) {
      audit = Audit(
        memories: try model.makeMemories(isShared: sharing != .copied), used: Array(logits))
    } catch { throw error.engineError }
  }

  /// Feeds a chunk into the audit's state set.
  public func predictAudit(_ chunk: Chunk) throws(EngineError) {
    guard let model, let audit else { throw .state(expected: "an audit") }
    try run(chunk, after: audit.consumed, model, audit.memories)
    self.audit?.consumed += chunk.ids
  }

  /// Compares the logits of both state sets, which must hold the same ids.
  public func compareAudit() throws(EngineError) -> Parity {
    guard let audit, audit.consumed == consumed else {
      throw .state(expected: "an audit of \(consumed.count) rows")
    }
    return Parity(used: audit.used, audited: Array(logits))
  }

  /// Drops the audit's state set and puts the logits in use back.
  public func endAudit() {
    if let audit { _ = logitStore.update(fromContentsOf: audit.used) }
    autoreleasepool { audit = nil }
  }
}

extension MLComputeUnits {
  /// A word for records.
  var name: String {
    switch self {
    case .cpuOnly: "cpuOnly"
    case .cpuAndGPU: "cpuAndGPU"
    case .all: "all"
    case .cpuAndNeuralEngine: "cpuAndNeuralEngine"
    @unknown default: "unknown"
    }
  }
}
