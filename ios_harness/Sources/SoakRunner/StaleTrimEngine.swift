// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine
import StreamingLM

/// The defect `trim-stale-state`: a trim neither remakes the state set nor fills it again, so the rows of the old head
/// stay where the kept tail should be.
final class StaleTrimEngine: InferenceEngine {
  private let engine: WitnessEngine

  init(_ engine: WitnessEngine) { self.engine = engine }

  var capacity: Int { engine.capacity }
  var stateBytes: Int { engine.stateBytes }

  func makeState(for purpose: StatePurpose) throws(EngineError) {
    if purpose != .trim { try engine.makeState(for: purpose) }
  }

  func releaseState(for purpose: StatePurpose) {
    if purpose != .trim { engine.releaseState(for: purpose) }
  }

  func predict(_ chunk: Chunk) throws(EngineError) {
    if chunk.purpose == .trim { engine.wait(for: chunk) } else { try engine.predict(chunk) }
  }

  func sample() throws(EngineError) -> Token { try engine.sample() }
}
