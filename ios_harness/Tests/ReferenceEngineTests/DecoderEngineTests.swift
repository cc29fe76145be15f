// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM
import Testing

@Suite struct DecoderEngineTests {
  private let engine: DecoderEngine

  init() throws { engine = try DecoderEngine(weights: try ModelFixture().weights) }

  @Test func aPredictionNeedsAState() throws {
    #expect(throws: EngineError.state(expected: "a state set")) {
      try engine.predict(Chunk(ids: [1], start: 0, purpose: .turn))
    }
  }

  @Test func twoStatesAtOnceAreRefused() throws {
    try engine.makeState(for: .conversation)
    #expect(throws: EngineError.state(expected: "no state set")) {
      try engine.makeState(for: .trim)
    }
  }

  @Test func nothingIsSampledBeforeAPrediction() throws {
    try engine.makeState(for: .conversation)
    #expect(throws: EngineError.state(expected: "a state set with rows")) {
      try engine.sample()
    }
  }

  @Test func rowsBeyondTheCapacityAreRefusedBeforeTheyAreWritten() throws {
    try engine.makeState(for: .conversation)
    #expect(throws: EngineError.capacity(needed: 161, available: 160)) {
      try engine.predict(Chunk(ids: Array(repeating: 1, count: 161), start: 0, purpose: .turn))
    }
  }

  @Test func aSkippedRowIsRefused() throws {
    try engine.makeState(for: .conversation)
    try engine.predict(Chunk(ids: [1, 2], start: 0, purpose: .turn))
    #expect(throws: EngineError.state(expected: "2 rows before the chunk")) {
      try engine.predict(Chunk(ids: [3], start: 3, purpose: .decode))
    }
  }

  @Test(arguments: [Token(-1), 256])
  func anIdOutsideTheVocabularyIsRefused(_ id: Token) throws {
    try engine.makeState(for: .conversation)
    #expect(throws: EngineError.self) {
      try engine.predict(Chunk(ids: [id], start: 0, purpose: .turn))
    }
  }

  @Test func anAuditFindsTheSameLogitsAndTouchesNothing() throws {
    try engine.makeState(for: .conversation)
    try engine.predict(Chunk(ids: [5, 9, 2], start: 0, purpose: .turn))
    let before = Array(engine.logits)
    try engine.beginAudit()
    try engine.predictAudit(Chunk(ids: [5, 9], start: 0, purpose: .audit))
    #expect(throws: EngineError.state(expected: "an audit of 3 rows")) {
      try engine.compareAudit()
    }
    try engine.predictAudit(Chunk(ids: [2], start: 2, purpose: .audit))
    let parity = try engine.compareAudit()
    #expect(parity.maxAbs < 1e-4 && parity.isTop1Equal && parity.top5Overlap == 1)
    engine.endAudit()
    #expect(Array(engine.logits) == before)
  }

  @Test func anAuditOfOtherIdsShows() throws {
    try engine.makeState(for: .conversation)
    try engine.predict(Chunk(ids: [5, 9, 2], start: 0, purpose: .turn))
    try engine.beginAudit()
    try engine.predictAudit(Chunk(ids: [5, 8, 2], start: 0, purpose: .audit))
    #expect(try engine.compareAudit().maxAbs > 0.1)
  }

  @Test func anAuditNeedsRows() throws {
    try engine.makeState(for: .conversation)
    #expect(throws: EngineError.state(expected: "a state set with rows")) {
      try engine.beginAudit()
    }
  }

  @Test func theStateIsAsLargeAsTheModelSays() throws {
    #expect(engine.stateBytes == 2 * 2 * 1 * 160 * 32 * 2)
    #expect(engine.capacity == 160)
  }

  @Test func theMachineKeepsTheContextOfARealDecoderAcrossTrims() throws {
    let plan = try ContextPlan(budget: 32, pin: 1, endIDs: [], chunk: 16)
    let machine = TurnMachine(
      engine: engine, plan: plan, signals: TurnSignals(), clock: LaunchClock())
    let fresh = try DecoderEngine(weights: try ModelFixture().weights)
    var trims = 0
    try machine.run(prompt: [1, 7, 9], limit: 60) { event in
      if case .trimming = event { trims += 1 }
      guard case .sampled(let sample) = event else { return }
      try fresh.makeState(for: .conversation)
      try fresh.predict(Chunk(ids: machine.window.context, start: 0, purpose: .turn))
      let expected = try fresh.sample()
      fresh.releaseState(for: .end)
      #expect(sample.token == expected)
    }
    #expect(trims == 2)
  }
}
