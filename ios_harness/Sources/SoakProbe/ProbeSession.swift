// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import SoakRunner
import StreamingLM

/// One soak, as the app's pipeline sees it: what to do, and where to report. Owned by the pipeline's thread.
///
/// A pipeline built on `TurnMachine` passes its events to `record`. Any other reports step by step, each before or after
/// the act as its name says: a process that dies leaves nothing else.
public final class ProbeSession {
  private let plan: SoakPlan
  private let launch: SoakLaunch
  private let recorder: TurnRecorder
  var state = OwnState()

  /// What a pipeline of its own has done so far.
  struct OwnState {
    var id = 0
    var bytes = 0
    var phase = PipelinePhase.idle
    var generated = 0
    /// The last prediction that was reported.
    var span = PredictionSpan(startNs: -1, endNs: -1)
  }

  init(plan: SoakPlan, launch: SoakLaunch) {
    self.plan = plan
    self.launch = launch
    recorder = TurnRecorder(telemetry: launch.telemetry, plan: plan, defects: Defects())
  }

  private var telemetry: Telemetry { launch.telemetry }

  /// Warnings and cancellation: read them before each prediction.
  public var signals: TurnSignals { telemetry.signals }

  /// The launch's clock, for the times of predictions.
  public var clock: LaunchClock { telemetry.clock }

  /// Whether the soak is to end: finish the step, report the turn's end and return.
  public var isOver: Bool {
    launch.ending.endIfDue(after: plan.scenario.durationS)
    let total = telemetry.gauges.tokensTotal.load(ordering: .relaxed)
    if let last = plan.scenario.stopAfterTokens, total >= last { launch.ending.end(.completed) }
    return launch.ending.reason != nil
  }

  /// Most tokens of a turn.
  public var turnLimit: Int { plan.scenario.prompts.turnLimit }

  /// Enters the next turn.
  ///
  /// - Returns: The ids of its prompt, and whether it begins a conversation: the state of the last one must go first.
  public func nextTurn() -> (prompt: [Token], isConversationStart: Bool) {
    recorder.place.turn += 1
    if recorder.place.turn > plan.scenario.prompts.turnsPerConversation {
      recorder.place = .start(ofConversation: recorder.place.conversation + 1)
    }
    let prompt = plan.schedule.prompt(
      conversation: recorder.place.conversation, turn: recorder.place.turn)
    return (prompt, recorder.place.turn == 1)
  }

  /// Records an event of a `TurnMachine`; give it to the machine as its sink.
  public func record(_ event: TurnEvent) throws {
    if case .prefilled(let prediction) = event {
      _ = telemetry.gauges.firstPredictionNs.compareExchange(
        expected: -1, desired: prediction.startNs, ordering: .relaxed)
    }
    try recorder.record(event)
  }

  /// Records that the model was loaded. Call it once, before the first turn; warnings are heard from here on.
  ///
  /// - Parameters:
  ///   - tookMs: How long it took.
  ///   - computeUnits: Processors that were asked for, a word.
  ///   - isCold: Whether the system had to prepare the model first.
  /// - Throws: `SystemError` when the journal cannot be written.
  public func modelLoaded(tookMs: Double, computeUnits: String, isCold: Bool) throws {
    telemetry.gauges.weightsBytes.store(plan.facts.weightsBytes, ordering: .relaxed)
    let reading = telemetry.readMemory()
    try telemetry.journal.record("load") { line in
      line.field("digest", plan.digest)
      line.field("bits_per_weight", plan.facts.bitsPerWeight)
      line.field("compute_units", computeUnits)
      line.field("plan", [Int]())
      line.field("cold", isCold)
      line.field("ms", tookMs)
      line.field("phase", "loaded")
      line.field("reason", "launch")
      line.field("weights_bytes", plan.facts.weightsBytes)
      line.memory(reading)
    }
    try telemetry.registerHandler()
    launch.didOpen()  // samples are taken from here on
  }

  /// Says how many surfaces the engine may hold, for the samples to come; 0 until it is said.
  public func holds(surfaces: Int) { telemetry.gauges.surfaces.store(surfaces, ordering: .relaxed) }

  /// Announces something that a process may die of: `load`, `predict`, `state`.
  public func willDo(_ about: String, _ detail: String) throws {
    try telemetry.breadcrumb(about, detail)
  }

  /// Records a failure that the pipeline survives.
  public func fault(_ code: String, _ message: String) throws {
    try recorder.flush()
    try recorder.fault(code, message, state.phase)
  }

  func set(phase: PipelinePhase) {
    state.phase = phase
    telemetry.gauges.phase = phase
  }

  func open() throws {
    let reading = telemetry.readMemory()
    try telemetry.journal.record("hello") { line in line.hello(plan, telemetry, reading) }
  }

  func close() throws -> FarewellReason {
    try recorder.flush()
    try telemetry.sample()
    let reason = launch.ending.reason ?? .fault
    try telemetry.sayBye(reason, recorder.totals)
    return reason
  }

  /// The notice that the last trim or eviction calls for.
  var notice: SoakNotice? { launch.snapshot().notice }

  func wasShown(_ notice: SoakNotice) { launch.noticeWasShown(notice) }
}
