// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM
import Synchronization

/// A synthetic engine whose tokens prove its memory: each is computed from ids read back from the state's own rows.
///
/// It does not check *where* rows are written, apart from the capacity: a row in the wrong place, a stale one or a
/// missing one shows as a wrong token. Weights and state sets are real dirty memory of the model's size.
public final class WitnessEngine: InferenceEngine {
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

    /// - Parameters:
    ///   - memoryScale: Phone bytes of one host byte, at least 1.
    ///   - speed: The set speed.
    ///   - nonce: The host's number for this launch.
    ///   - endEvery: E of the contract.
    ///   - clock: The launch's clock.
    public init(
      memoryScale: Int, speed: EngineSpeed, nonce: UInt64, endEvery: UInt64, clock: LaunchClock
    ) {
      self.memoryScale = max(1, memoryScale)
      self.speed = speed
      self.nonce = nonce
      self.endEvery = endEvery
      self.clock = clock
    }
  }

  /// The model's numbers.
  public let model: WitnessModel

  private let setting: Setting
  private let vocabulary: WitnessVocabulary
  private let rowBytes: Int
  private let weights: MappedRegion
  private var state: MappedRegion?
  private var rows = 0
  private let isPredicting = Atomic<Bool>(false)
  private var pacer: Pacer

  /// Loads the weights: maps and touches their memory.
  ///
  /// - Parameters:
  ///   - model: The model's numbers.
  ///   - setting: Scale, speed and nonce.
  /// - Throws: `EngineError.memory` when the system gives none.
  public init(model: WitnessModel, setting: Setting) throws(EngineError) {
    self.model = model
    self.setting = setting
    vocabulary = model.vocabulary(endEvery: setting.endEvery)
    rowBytes = max(MemoryLayout<Token>.size, model.rowBytes / setting.memoryScale)
    weights = try MappedRegion(byteCount: model.weightsBytes / setting.memoryScale)
    pacer = Pacer(clock: setting.clock)
  }

  /// Most rows of a state set.
  public var capacity: Int { model.capacity }

  /// Phone bytes of one state set.
  public var stateBytes: Int { model.stateBytes }

  /// Maps the state set at its full length and touches every page.
  public func makeState(for purpose: StatePurpose) throws(EngineError) {
    if state != nil { throw .state(expected: "no state set") }
    state = try MappedRegion(byteCount: rowBytes * capacity)
    rows = 0
  }

  /// Unmaps the state set.
  public func releaseState(for purpose: StatePurpose) {
    state = nil
    rows = 0
  }

  /// Writes the chunk's ids into its rows and waits until the set speed allows the next prediction.
  public func predict(_ chunk: Chunk) throws(EngineError) {
    guard let state else { throw .state(expected: "a state set") }
    if chunk.end > capacity { throw .capacity(needed: chunk.end, available: capacity) }
    // The compiler allows one thread only; a caller that gets around it is refused here.
    if isPredicting.exchange(true, ordering: .acquiringAndReleasing) { throw .overlap }
    defer { isPredicting.store(false, ordering: .releasing) }
    for (offset, id) in chunk.ids.enumerated() {
      state.writeRow(id, at: (chunk.start + offset) * rowBytes, byteCount: rowBytes)
    }
    rows = chunk.end
    wait(for: chunk)
  }

  /// Computes the token from ids read back from the rows.
  public func sample() throws(EngineError) -> Token {
    guard let state, rows > 0 else { throw .state(expected: "a state set with rows") }
    return Mixing.witnessToken(
      rowCount: rows, vocabulary: vocabulary, nonce: setting.nonce
    ) { row in
      state.readRow(at: row * rowBytes)
    }
  }

  /// Takes the time of a prediction and does nothing else; for engines that skip one.
  public func wait(for chunk: Chunk) {
    let isDecode = chunk.purpose == .decode
    let speed = setting.speed
    pacer.wait(
      count: chunk.ids.count,
      tokensPerS: isDecode ? speed.decodeTokensPerS : speed.prefillTokensPerS)
  }
}
