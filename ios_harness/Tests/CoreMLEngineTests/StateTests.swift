// SPDX-License-Identifier: Apache-2.0

import CoreMLEngine
import HarnessCore
import StreamingLM
import Testing

@Suite struct StateTests {
  private let prompt = (0..<20).map { Token($0 * 3) }

  /// Apple does not say whether a state serves another model than the one that made it.
  @Test(arguments: [("serve", StateSharing.shared), ("refuse", .copied), ("ignore", .copied)])
  func theProbeFindsOutWhetherOneStateServesBoth(
    _ behaviour: String, _ expected: StateSharing
  ) throws {
    let kit = try StandInKit(faults: #""foreign_state":"\#(behaviour)""#)
    let engine = try kit.engine()
    #expect(engine.sharing == expected)
    let tokens = try engine.generate(8, after: prompt)
    #expect(try tokens == StandInKit.reference().generate(8, after: prompt))
  }

  @Test func aModelWithoutStatesNeedsNoProbe() throws {
    #expect(try StandInKit(.explicit).engine().sharing == .notNeeded)
    #expect(try StandInKit(.stateless).engine().sharing == .notNeeded)
  }

  @Test func rowsAreCopiedBackWhenAChunkFollowsADecodeStep() throws {
    let kit = try StandInKit()
    let engine = try kit.engine()
    try engine.makeState(for: .conversation)
    let reference = try StandInKit.reference()
    try reference.makeState(for: .conversation)
    for (start, ids) in [(0, prompt), (20, [9]), (21, prompt), (41, [4])] {
      let chunk = Chunk(ids: ids, start: start, purpose: .turn)
      try engine.predict(chunk)
      try reference.predict(chunk)
    }
    #expect(try engine.sample() == reference.sample())
  }

  @Test func oneValueThatIsNoNumberPoisonsTheStateUntilItIsMadeAgain() throws {
    let kit = try StandInKit(faults: #""poisons_at":9"#)
    let engine = try kit.engine()
    #expect(throws: EngineError.nonFinite) { try engine.generate(30, after: prompt) }
    try engine.makeState(for: .resume)
    try engine.predict(Chunk(ids: prompt, start: 0, purpose: .resume))
    #expect(throws: Never.self) { try engine.sample() }
  }

  @Test func aPoisonedTurnEndsWithAFaultAndTheNextOneIsWell() throws {
    let kit = try StandInKit(faults: #""poisons_at":9"#)
    let machine = TurnMachine(
      engine: try kit.engine(), plan: try ContextPlan(budget: 64, pin: 0, endIDs: [], chunk: 16),
      signals: TurnSignals(), clock: LaunchClock())
    var endings: [StopReason] = []
    var faults: [EngineError] = []
    for _ in 1...2 {
      try machine.run(prompt: prompt, limit: 12) { event in
        if case .faulted(let error, _) = event { faults.append(error) }
        if case .ended(let reason, _) = event { endings.append(reason) }
      }
    }
    #expect(faults == [.nonFinite])
    #expect(endings == [.fault, .turnLimit])
  }

  @Test func aSecondPredictionWhileOneRunsIsRefused() throws {
    let kit = try StandInKit()
    let hook = Hook()
    let engine = try kit.engine { act, _ in if act == .predict { hook.call() } }
    hook.body = { [unowned engine] in
      try engine.predict(Chunk(ids: [1], start: 0, purpose: .decode))
    }
    try engine.makeState(for: .conversation)
    try engine.predict(Chunk(ids: [1], start: 0, purpose: .turn))
    #expect(hook.error as? EngineError == .overlap)
  }

  @Test func statesAreMadeOnceAndNeededForPredictions() throws {
    let kit = try StandInKit()
    let engine = try kit.engine()
    #expect(throws: EngineError.state(expected: "a state set")) {
      try engine.predict(Chunk(ids: [1], start: 0, purpose: .turn))
    }
    try engine.makeState(for: .conversation)
    #expect(throws: EngineError.state(expected: "no state set")) {
      try engine.makeState(for: .trim)
    }
    #expect(throws: EngineError.state(expected: "0 rows before the chunk")) {
      try engine.predict(Chunk(ids: [1], start: 5, purpose: .turn))
    }
    #expect(throws: EngineError.state(expected: "a state set with rows")) {
      try engine.sample()
    }
  }

  private final class Hook {
    var body: () throws -> Void = {}
    var error: (any Error)?

    func call() {
      do { try body() } catch { self.error = error }
    }
  }
}
