// SPDX-License-Identifier: Apache-2.0

import StreamingLM

/// A failure that an engine is told to have, so that the pipeline's answer to it can be tried (docs/protocol.md, 2.2).
public enum ScriptedFault: Sendable, Equatable {
  /// The logits of what would be this token of the launch are not finite, until the state set is remade.
  case nonFinite(atToken: Int)
  /// From the prediction for this token of the launch on there are no surfaces, until the model is loaded again.
  case surfaces(atToken: Int)
  /// The load fails.
  case load
}

/// Plays scripted faults. Each happens once.
struct FaultScript {
  private var waiting: [ScriptedFault]
  private var sampled = 0
  private var isPoisoned = false
  private var isExhausted = false

  init(_ faults: [ScriptedFault]) { waiting = faults }

  mutating func load() throws(EngineError) {
    if take(.load) { throw .failed("the model was told not to load") }
  }

  mutating func makeState() { isPoisoned = false }

  mutating func reload() { isExhausted = false }

  mutating func predict() throws(EngineError) {
    if take(.surfaces(atToken: sampled + 1)) { isExhausted = true }
    if isExhausted { throw .surfaces }
  }

  /// Counts a sample, unless its logits are not finite.
  mutating func sample() throws(EngineError) {
    if take(.nonFinite(atToken: sampled + 1)) { isPoisoned = true }
    if isPoisoned { throw .nonFinite }
    sampled += 1
  }

  private mutating func take(_ fault: ScriptedFault) -> Bool {
    guard let index = waiting.firstIndex(of: fault) else { return false }
    waiting.remove(at: index)
    return true
  }
}
