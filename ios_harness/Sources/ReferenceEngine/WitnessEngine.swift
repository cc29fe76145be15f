// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM
import Synchronization

/// A synthetic engine whose tokens prove its memory: each is computed from ids read back from the state's own rows.
///
/// It does not check *where* rows are written, apart from the capacity: a row in the wrong place, a stale one or a
/// missing one shows as a wrong token. Weights and state sets are real dirty memory of the model's size.
public final class WitnessEngine: AuditingEngine {
  /// How an engine is set up beside its model.
  public struct Setting: Sendable {
    /// Phone bytes of one host byte.
    public let memoryScale: Int
    /// The set speed.
    public let speed: EngineSpeed
    /// The host's number for this launch.
    public let nonce: UInt64
    /// E of the contract.
    public let endEvery: UInt64
    /// The launch's clock.
    public let clock: LaunchClock
    /// Failures on purpose.
    public let faults: [ScriptedFault]
    /// Share of the set speed that a prediction has: heat slows a phone down.
    public let speedShare: @Sendable () -> Double

    /// - Parameters:
    ///   - memoryScale: Phone bytes of one host byte, at least 1.
    ///   - speed: The set speed.
    ///   - nonce: The host's number for this launch.
    ///   - endEvery: E of the contract.
    ///   - clock: The launch's clock.
    ///   - faults: Failures on purpose.
    ///   - speedShare: Share of the set speed that a prediction has; over 0.
    public init(
      memoryScale: Int, speed: EngineSpeed, nonce: UInt64, endEvery: UInt64, clock: LaunchClock,
      faults: [ScriptedFault] = [], speedShare: @escaping @Sendable () -> Double = { 1 }
    ) {
      self.memoryScale = max(1, memoryScale)
      self.speed = speed
      self.nonce = nonce
      self.endEvery = endEvery
      self.clock = clock
      self.faults = faults
      self.speedShare = speedShare
    }
  }

  /// The model's numbers.
  public let model: WitnessModel
  /// How it is set up.
  public let setting: Setting
  /// State sets that may be made at once, audits apart: more than one is a defect.
  public var mostStates = 1

  private let vocabulary: WitnessVocabulary
  private let rowBytes: Int
  private let weights: MappedRegion
  /// The oldest first; the last is the one in use.
  private var states: [MappedRegion] = []
  private var audit: MappedRegion?
  private var rows = 0
  private var auditedRows = 0
  private let isPredicting = Atomic<Bool>(false)
  private var pacer: Pacer
  private var script: FaultScript

  /// Loads the weights: maps and touches their memory, and takes the model's time.
  ///
  /// - Parameters:
  ///   - model: The model's numbers.
  ///   - setting: Scale, speed and nonce.
  /// - Throws: `EngineError.memory` when the system gives none, `EngineError.failed` on order.
  public init(model: WitnessModel, setting: Setting) throws(EngineError) {
    self.model = model
    self.setting = setting
    vocabulary = model.vocabulary(endEvery: setting.endEvery)
    rowBytes = max(MemoryLayout<Token>.size, model.rowBytes / setting.memoryScale)
    script = FaultScript(setting.faults)
    try script.load()
    weights = try MappedRegion(byteCount: model.weightsBytes / setting.memoryScale)
    pacer = Pacer(clock: setting.clock)
    takeLoadTime()
  }

  /// Most rows of a state set.
  public var capacity: Int { model.capacity }

  /// Phone bytes of one state set.
  public var stateBytes: Int { model.stateBytes }

  /// Host bytes of a row.
  public var rowHostBytes: Int { rowBytes }

  /// What a load of this model finds, the first or another.
  public func modelLoad(isCold: Bool) -> ModelLoad {
    ModelLoad(computeUnits: "none", plan: model.computePlan, isCold: isCold)
  }

  /// Maps the state set at its full length and touches every page.
  public func makeState(for purpose: StatePurpose) throws(EngineError) {
    if states.count >= mostStates { throw .state(expected: "no state set") }
    states.append(try MappedRegion(byteCount: rowBytes * capacity))
    script.makeState()
    rows = 0
  }

  /// Unmaps the state set, the oldest where there are two.
  public func releaseState(for purpose: StatePurpose) {
    if !states.isEmpty { states.removeFirst() }
    if states.isEmpty { rows = 0 }
  }

  /// Writes the chunk's ids into its rows and waits until the set speed allows the next prediction.
  public func predict(_ chunk: Chunk) throws(EngineError) {
    // The compiler allows one thread only; a caller that gets around it is refused here.
    if isPredicting.exchange(true, ordering: .acquiringAndReleasing) { throw .overlap }
    defer { isPredicting.store(false, ordering: .releasing) }
    setting.clock.sleep(untilNs: try begin(chunk))
  }

  /// Writes the chunk's ids into its rows and returns when the prediction ends, without waiting for it.
  public func begin(_ chunk: Chunk) throws(EngineError) -> Int64 {
    guard let state = states.last else { throw .state(expected: "a state set") }
    try script.predict()
    try write(chunk, into: state)
    rows = chunk.end
    return schedule(chunk)
  }

  /// Computes the token from ids read back from the rows.
  public func sample() throws(EngineError) -> Token {
    let digest = try digest()
    try script.sample()
    return vocabulary.token(from: digest)
  }

  /// The logits of the last prediction, best first.
  public func candidates() throws(EngineError) -> [Candidate] {
    vocabulary.candidates(from: try digest())
  }

  /// Reads back the ids of the state set in use.
  public func readRows() -> [Token] {
    guard let state = states.last else { return [] }
    return (0..<rows).map { state.readRow(at: $0 * rowBytes) }
  }

  /// Takes the time of a prediction and does nothing else; for engines that skip one.
  public func wait(for chunk: Chunk) { setting.clock.sleep(untilNs: schedule(chunk)) }

  /// Takes the model's time again. There must be no state set.
  public func reload() throws(EngineError) -> ModelLoad {
    if !states.isEmpty { throw .state(expected: "no state set") }
    script.reload()
    takeLoadTime()
    return modelLoad(isCold: false)
  }

  /// Maps a second state set.
  public func beginAudit() throws(EngineError) {
    if audit != nil { throw .state(expected: "no audit") }
    audit = try MappedRegion(byteCount: rowBytes * capacity)
    auditedRows = 0
  }

  /// Writes the chunk's ids into the second state set and takes the time of it.
  public func predictAudit(_ chunk: Chunk) throws(EngineError) {
    guard let audit else { throw .state(expected: "an audit") }
    try write(chunk, into: audit)
    auditedRows = chunk.end
    wait(for: chunk)
  }

  /// Compares the candidates that both state sets give.
  public func compareAudit() throws(EngineError) -> Parity {
    Parity(used: try candidates(), audited: try auditCandidates())
  }

  /// The logits of the audit's last prediction, best first.
  public func auditCandidates() throws(EngineError) -> [Candidate] {
    guard let audit, auditedRows > 0 else { throw .state(expected: "an audit with rows") }
    return vocabulary.candidates(from: digest(of: audit, auditedRows))
  }

  /// Unmaps the second state set.
  public func endAudit() { audit = nil }

  private func write(_ chunk: Chunk, into state: MappedRegion) throws(EngineError) {
    if chunk.end > capacity { throw .capacity(needed: chunk.end, available: capacity) }
    for (offset, id) in chunk.ids.enumerated() {
      state.writeRow(id, at: (chunk.start + offset) * rowBytes, byteCount: rowBytes)
    }
  }

  private func digest() throws(EngineError) -> UInt64 {
    guard let state = states.last, rows > 0 else {
      throw .state(expected: "a state set with rows")
    }
    return digest(of: state, rows)
  }

  private func digest(of state: MappedRegion, _ rowCount: Int) -> UInt64 {
    Mixing.witnessDigest(rowCount: rowCount, nonce: setting.nonce) { row in
      state.readRow(at: row * rowBytes)
    }
  }

  private func schedule(_ chunk: Chunk) -> Int64 {
    let speed = setting.speed
    let isDecode = chunk.purpose == .decode
    return pacer.schedule(
      count: chunk.ids.count,
      tokensPerS: (isDecode ? speed.decodeTokensPerS : speed.prefillTokensPerS)
        * setting.speedShare())
  }

  private func takeLoadTime() {
    setting.clock.sleep(untilNs: setting.clock.nowNs + Int64(model.loadMs) * 1_000_000)
  }
}
