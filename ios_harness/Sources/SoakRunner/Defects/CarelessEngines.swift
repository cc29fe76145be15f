// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine
import StreamingLM

/// An eviction is claimed, and the state set's memory stays until the next one is made.
final class KeptMemoryEngine: WitnessShim {
  private var owed: StatePurpose?

  override func releaseState(for purpose: StatePurpose) {
    if purpose == .evict { owed = purpose } else { super.releaseState(for: purpose) }
  }

  override func makeState(for purpose: StatePurpose) throws(EngineError) {
    if let owed { super.releaseState(for: owed) }
    owed = nil
    try super.makeState(for: purpose)
  }
}

/// The memory of the cache grows with each token that is fed, beyond what the state set was made with.
final class GrowingCacheEngine: WitnessShim {
  private let percent: Int
  private var growth: [MappedRegion] = []
  private var owedBytes = 0

  private static let pieceBytes = 4096

  init(_ engine: WitnessEngine, percent: Int) {
    self.percent = percent
    super.init(engine)
  }

  override func predict(_ chunk: Chunk) throws(EngineError) {
    owedBytes += engine.rowHostBytes * chunk.ids.count * percent / 100
    let pieces = owedBytes / Self.pieceBytes
    if pieces > 0 { growth.append(try MappedRegion(byteCount: pieces * Self.pieceBytes)) }
    owedBytes -= pieces * Self.pieceBytes
    try super.predict(chunk)
  }

  override func releaseState(for purpose: StatePurpose) {
    growth = []
    owedBytes = 0
    super.releaseState(for: purpose)
  }
}

/// Predictions go on after `predict` has returned, and someone does not wait for their end.
final class UnawaitedEngine: WitnessShim {
  /// Who does not wait.
  enum Careless { case prediction, release }

  private let careless: Careless
  private var span: PredictionSpan?

  init(_ engine: WitnessEngine, ignoring careless: Careless) {
    self.careless = careless
    super.init(engine)
  }

  override var lastSpan: PredictionSpan? { span }

  override func predict(_ chunk: Chunk) throws(EngineError) {
    let clock = engine.setting.clock
    if careless != .prediction { awaitEnd() }
    let startNs = clock.nowNs
    let endNs = try engine.begin(chunk)
    span = PredictionSpan(startNs: startNs, endNs: max(startNs, endNs))
    if careless == .prediction { clock.sleep(untilNs: startNs + (endNs - startNs) / 2) }
  }

  override func releaseState(for purpose: StatePurpose) {
    if careless != .release || purpose != .evict { awaitEnd() }
    super.releaseState(for: purpose)
  }

  private func awaitEnd() {
    if let span { engine.setting.clock.sleep(untilNs: span.endNs) }
  }
}
