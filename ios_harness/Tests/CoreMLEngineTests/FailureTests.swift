// SPDX-License-Identifier: Apache-2.0

@testable import CoreMLEngine
import Foundation
import HarnessCore
import StreamingLM
import Testing

@Suite struct FailureTests {
  /// Texts of public reports.
  @Test(arguments: [
    ("Failed to allocate E5 buffer object", "surfaces"),
    ("Unable to create memory IOSurface object", "surfaces"),
    ("ANECCompile() FAILED 11", "neural_engine"),
    ("MILCompilerForANE error", "neural_engine"),
    ("predict failed: status=0x1d (11)", "neural_engine"),
    ("Failed to build the model execution plan (error code: -14)", "execution_plan"),
    ("kIOGPUCommandBufferCallbackErrorBackgroundExecutionNotPermitted", "background"),
    ("something nobody has seen", "prediction"),
  ])
  func errorsFallIntoAClosedSet(_ text: String, _ code: String) {
    let inner = NSError(
      domain: "inner", code: 1, userInfo: [NSLocalizedDescriptionKey: text])
    let outer = NSError(
      domain: "com.apple.CoreML", code: 0, userInfo: [NSUnderlyingErrorKey: inner])
    for error in [inner, outer] {
      #expect(CoreMLError.of(error) { .prediction($0) }.code == code)
    }
    #expect(CoreMLError.of(CoreMLError.memory("x")) { .load($0) } == .memory("x"))
  }

  @Test func aModelThatDoesNotLoadSaysWhy() throws {
    let kit = try StandInKit(faults: #""load_fails":"ANECCompile() FAILED 11""#)
    let error = #expect(throws: CoreMLError.self) { try kit.engine() }
    #expect(error?.code == "neural_engine")
  }

  @Test func aFailedPredictionReachesTheTurnAsAFault() throws {
    let kit = try StandInKit(faults: #""predict_fails":"status=0x1d (11)","fails_at":8"#)
    let machine = TurnMachine(
      engine: try kit.engine(), plan: try ContextPlan(budget: 64, pin: 0, endIDs: [], chunk: 16),
      signals: TurnSignals(), clock: LaunchClock())
    var fault: EngineError?
    var ending: StopReason?
    try machine.run(prompt: [1, 2, 3], limit: 20) { event in
      if case .faulted(let error, _) = event { fault = error }
      if case .ended(let reason, _) = event { ending = reason }
    }
    #expect(fault?.description.hasPrefix("neural_engine: ") == true)
    #expect(ending == .fault)
  }

  @Test(arguments: ["causal_mask", "position_ids", "input_ids", "logits"])
  func aFeatureOfAnotherNameIsNamedWhenLoading(_ name: String) throws {
    let kit = try StandInKit(faults: #""renames":{"\#(name)":"attention"}"#)
    let error = #expect(throws: CoreMLError.self) { try kit.engine() }
    #expect(error?.code == "interface")
    #expect(error?.description.contains(name) == true)
  }

  @Test func anInputThatNobodyFillsIsNamedWhenLoading() throws {
    let kit = try StandInKit(faults: #""renames":{"logit_index":"token_types"}"#)
    #expect(
      throws: CoreMLError.interface(feature: "token_types", expected: "no such input")
    ) {
      try kit.engine()
    }
  }

  @Test func chunksInTheWrongOrderAreRefused() throws {
    let kit = try StandInKit(.chunked)
    #expect(throws: CoreMLError.self) {
      try CoreMLEngine(files: Array(kit.files.reversed()))
    }
    #expect(throws: CoreMLError.self) { try CoreMLEngine(files: []) }
  }

  @Test func dangerousActsAreAnnouncedBeforeTheyHappen() throws {
    let kit = try StandInKit(faults: #""ignores_backings":true"#)
    let journal = Lines()
    let engine = try kit.engine(.init(ledger: SurfaceLedger(ceiling: 3))) { act, _ in
      journal.acts.append(act)
    }
    #expect(journal.acts == [.load, .predict])
    _ = try engine.generate(3, after: [1, 2])
    #expect(journal.acts == [.load, .predict, .state, .predict])
    journal.acts = []
    _ = try engine.generate(1, after: [1, 2])
    #expect(journal.acts == [.reload, .predict, .state, .predict])
  }

  private final class Lines { var acts: [CoreMLAct] = [] }
}
