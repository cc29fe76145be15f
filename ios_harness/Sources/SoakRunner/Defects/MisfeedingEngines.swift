// SPDX-License-Identifier: Apache-2.0

import StreamingLM

/// A witness whose rows are not where the pipeline counts them.
class ShiftedEngine: WitnessShim {
  /// Rows that the state set holds beyond what the pipeline counts.
  fileprivate(set) var shift = 0

  override func makeState(for purpose: StatePurpose) throws(EngineError) {
    try super.makeState(for: purpose)
    shift = 0
  }

  override func predict(_ chunk: Chunk) throws(EngineError) {
    try super.predict(Chunk(ids: chunk.ids, start: chunk.start + shift, purpose: chunk.purpose))
  }
}

/// The prompt's last id is fed again to get the first logits, as if they were not there already.
final class DoubleFeedEngine: ShiftedEngine {
  private var lastChunk: Chunk?

  override func predict(_ chunk: Chunk) throws(EngineError) {
    lastChunk = chunk.purpose == .turn ? chunk : nil
    try super.predict(chunk)
  }

  override func sample() throws(EngineError) -> Token {
    if let chunk = lastChunk, let id = chunk.ids.last {
      lastChunk = nil
      try super.predict(Chunk(ids: [id], start: chunk.end, purpose: .decode))
      shift += 1
    }
    return try super.sample()
  }
}

/// The first token that is generated after a prompt is shown and not fed.
final class DroppedTokenEngine: ShiftedEngine {
  private var isFirst = false

  override func predict(_ chunk: Chunk) throws(EngineError) {
    if chunk.purpose == .decode, isFirst {
      isFirst = false
      shift -= 1
      engine.wait(for: chunk)
    } else {
      isFirst = chunk.purpose == .turn
      try super.predict(chunk)
    }
  }
}

/// Each decode step feeds the whole context again, as a cache that is never used would have it.
final class RefeedingEngine: WitnessShim {
  override func predict(_ chunk: Chunk) throws(EngineError) {
    if chunk.purpose == .decode {
      try super.predict(Chunk(ids: engine.readRows(), start: 0, purpose: .resume))
    }
    try super.predict(chunk)
  }
}
