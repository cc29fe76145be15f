// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine
import StreamingLM

/// A witness that does what a witness does. Defects of the engine override the one member that they spoil.
class WitnessShim: AuditingEngine {
  let engine: WitnessEngine

  init(_ engine: WitnessEngine) { self.engine = engine }

  var capacity: Int { engine.capacity }
  var stateBytes: Int { engine.stateBytes }
  var lastSpan: PredictionSpan? { engine.lastSpan }
  func makeState(for purpose: StatePurpose) throws(EngineError) {
    try engine.makeState(for: purpose)
  }
  func releaseState(for purpose: StatePurpose) { engine.releaseState(for: purpose) }
  func predict(_ chunk: Chunk) throws(EngineError) { try engine.predict(chunk) }
  func sample() throws(EngineError) -> Token { try engine.sample() }
  func reload() throws(EngineError) -> ModelLoad { try engine.reload() }
  func beginAudit() throws(EngineError) { try engine.beginAudit() }
  func predictAudit(_ chunk: Chunk) throws(EngineError) { try engine.predictAudit(chunk) }
  func compareAudit() throws(EngineError) -> Parity { try engine.compareAudit() }
  func endAudit() { engine.endAudit() }
}
