// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
@testable import StreamingLM
import Synchronization
import Testing

@Suite struct TurnMachineTests {
  private func makeMachine(
    engine: (any InferenceEngine)? = nil, budget: Int = 32, signals: TurnSignals = TurnSignals()
  ) throws -> TurnMachine {
    TurnMachine(
      engine: try engine ?? WitnessFixture.engine(), plan: try WitnessFixture.plan(budget: budget),
      signals: signals, clock: LaunchClock())
  }

  @Test func everyTokenProvesTheContextAcrossTrims() throws {
    let machine = try makeMachine()
    var trims = 0
    try machine.run(prompt: [1, 7, 9], limit: 200) { event in
      if case .trimming(let trim, _) = event {
        trims += 1
        #expect(trim.before == 32 && trim.kept.count == 16 && trim.kept.first == 1)
      }
      if case .sampled(let sample) = event {
        #expect(sample.rows <= 32)
        #expect(sample.token == WitnessFixture.expected(machine.window.context))
      }
    }
    #expect(trims == 11)
  }

  @Test func aWarningIsAnsweredOnceWithAllNumbersRaisedUntilThen() throws {
    let signals = TurnSignals()
    let machine = try makeMachine(signals: signals)
    var answered: [[Int]] = []
    try machine.run(prompt: [1, 7, 9], limit: 20) { event in
      if case .sampled(let sample) = event, [10, 14].contains(sample.rows) {
        signals.warn(answered.count * 2 + 1)
        signals.warn(answered.count * 2 + 2)
      }
      if case .evicting(_, _, let warnings) = event {
        answered.append(warnings)
        signals.warn(99)  // before the release is done: belongs to this eviction
      }
    }
    #expect(answered == [[1, 2], [3, 4]])
    #expect(!signals.isWarned)
  }

  @Test func aWarningWithinATrimIsAnsweredAfterItsFirstChunk() throws {
    let signals = TurnSignals()
    let machine = try makeMachine(signals: signals)
    var answered: [[Int]] = []
    try machine.run(prompt: [1, 7, 9], limit: 40) { event in
      if case .trimming = event, answered.isEmpty { signals.warn(1) }
      if case .evicting(let eviction, _, let warnings) = event {
        #expect(eviction.before == 8)
        answered.append(warnings)
      }
    }
    #expect(answered == [[1]])
  }

  @Test func aWarningThatFindsNoStateIsForgotten() throws {
    let signals = TurnSignals()
    signals.warn(1)
    try makeMachine(signals: signals).run(prompt: [1, 7, 9], limit: 5) { event in
      if case .evicting = event { Issue.record("nothing was there to evict") }
    }
    #expect(!signals.isWarned)
  }

  @Test func anEngineAtItsCapacityEndsTheTurnWithAFaultAndTheNextTurnWorks() throws {
    let plan = try ContextPlan(
      budget: 32, pin: 1, endIDs: [0], chunk: 8,
      rules: ContextRules { $0.isTrimDue = { _, _, _ in false } })
    let machine = TurnMachine(
      engine: try WitnessFixture.engine(), plan: plan, signals: TurnSignals(),
      clock: LaunchClock())
    var faults: [EngineError] = []
    var reasons: [StopReason] = []
    let sink = { (event: TurnEvent) in
      if case .faulted(let error, _) = event { faults.append(error) }
      if case .ended(let reason, _) = event { reasons.append(reason) }
    }
    try machine.run(prompt: [1, 7, 9], limit: 200, sink)
    try machine.run(prompt: [8], limit: 4, sink)
    #expect(faults == [.capacity(needed: 65, available: 64)])
    #expect(reasons == [.fault, .turnLimit])
    #expect(machine.window.rows == 5)
  }

  @Test func cancelledBeforeTheStartPredictsNothing() throws {
    let signals = TurnSignals()
    signals.isCancelled = true
    var events = 0
    var reason: StopReason?
    try makeMachine(signals: signals).run(prompt: [1, 2], limit: nil) { event in
      events += 1
      if case .ended(let ended, _) = event { reason = ended }
    }
    #expect(reason == .cancelled && events == 2)
  }

  @Test func noPredictionRunsInTheBackground() throws {
    let signals = TurnSignals()
    let machine = try makeMachine(signals: signals)
    var released = false
    try machine.begin(prompt: [1, 2, 3], limit: 5) { _ in }
    for _ in 0..<20 {
      _ = try machine.advance { event in
        if case .sampled = event { signals.isInBackground = true }
        if case .released(let change) = event { released = change.purpose == .background }
        if case .made = event { #expect(!signals.isInBackground) }
      }
    }
    #expect(released && machine.window.rows == 0)
    signals.isInBackground = false
    var ended: StopReason?
    try machine.settle { event in
      if case .sampled(let sample) = event {
        #expect(sample.token == WitnessFixture.expected(machine.window.context))
      }
      if case .ended(let reason, _) = event { ended = reason }
    }
    #expect(ended == .turnLimit)
  }

  @Test func whatTheSinkThrowsEndsTheCall() throws {
    let machine = try makeMachine()
    #expect(throws: SystemError.self) {
      try machine.run(prompt: [1, 2], limit: nil) { event in
        if case .sampled = event { throw SystemError("write", code: 28) }
      }
    }
  }
}

@Suite struct WitnessEngineTests {
  @Test func overlappingPredictionsAreRefused() throws {
    nonisolated(unsafe) let engine = try WitnessFixture.engine(decodeTokensPerS: 5)
    try engine.makeState(for: .conversation)
    let errors = Mutex<[EngineError]>([])
    let ended = Atomic<Int>(0)
    for _ in 0..<2 {
      try Worker.start {
        let chunk = Chunk(ids: [5], start: 0, purpose: .decode)
        do throws(EngineError) { try engine.predict(chunk) } catch {
          errors.withLock { $0.append(error) }
        }
        ended.add(1, ordering: .releasing)
      }
    }
    let clock = LaunchClock()
    while ended.load(ordering: .acquiring) < 2 { clock.sleep(untilNs: clock.nowNs + 1_000_000) }
    #expect(errors.withLock { $0 } == [.overlap])
  }

  @Test func positionsBeyondTheCapacityAreRefused() throws {
    let engine = try WitnessFixture.engine()
    try engine.makeState(for: .conversation)
    #expect(throws: EngineError.capacity(needed: 65, available: 64)) {
      try engine.predict(Chunk(ids: [5, 6], start: 63, purpose: .turn))
    }
  }

  @Test func withoutAStateNothingIsPredicted() throws {
    let engine = try WitnessFixture.engine()
    #expect(throws: EngineError.state(expected: "a state set")) {
      try engine.predict(Chunk(ids: [5], start: 0, purpose: .turn))
    }
  }

  @Test func aRowThatIsNotRewrittenChangesTheToken() throws {
    let engine = try WitnessFixture.engine()
    try engine.makeState(for: .conversation)
    let old = Array(Token(10)..<18)
    try engine.predict(Chunk(ids: old, start: 0, purpose: .turn))
    #expect(try engine.sample() == WitnessFixture.expected(old))
    let new = Array(Token(20)..<28)
    try engine.predict(Chunk(ids: Array(new.dropFirst()), start: 1, purpose: .turn))
    #expect(try engine.sample() == WitnessFixture.expected([10] + new.dropFirst()))
  }

  @Test(arguments: [
    #"{"kind":"coreml"}"#, "[]", "{}",
    #"{"kind":"witness","quantization":"int2"}"#,
    """
    {"kind":"witness","quantization":"int4","bits_per_weight":4,"weights_bytes":1,"kv_row_bytes":4,
     "capacity":8,"vocab":10,"first_id":10,"end_id":0,"bos_id":1,"chunk":4}
    """,
  ])
  func aModelFileThatMakesNoSenseIsRefused(json: String) {
    #expect(throws: JSONError.self) { try WitnessModel(json: Array(json.utf8)) }
  }
}
