// SPDX-License-Identifier: Apache-2.0

import StreamingLM

/// A trim neither remakes the state set nor fills it again, so the rows of the old head stay where the kept tail should
/// be.
final class StaleTrimEngine: WitnessShim {
  override func makeState(for purpose: StatePurpose) throws(EngineError) {
    if purpose != .trim { try super.makeState(for: purpose) }
  }

  override func releaseState(for purpose: StatePurpose) {
    if purpose != .trim { super.releaseState(for: purpose) }
  }

  override func predict(_ chunk: Chunk) throws(EngineError) {
    if chunk.purpose == .trim { engine.wait(for: chunk) } else { try super.predict(chunk) }
  }
}
