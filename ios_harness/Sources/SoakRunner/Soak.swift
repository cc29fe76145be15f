// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// Plays one scenario from `hello` to `bye`. Owned by the pipeline's thread.
final class Soak {
  private let plan: SoakPlan
  private let telemetry: Telemetry
  private let ending: SoakEnding
  private let recorder: TurnRecorder
  private let machine: TurnMachine
  private let loader: ModelLoader
  private let governor: MemoryGovernor
  private let schedule: TokenSchedule
  private let memory: HeldMemory
  private let mishap: Defects.Mishap?
  /// Predictions before the warning handler is registered; nil when it is.
  private var handlerDelay: Int?
  /// When the scenario takes the app back to the foreground; nil when it is there.
  private var returnNs: Int64?
  private var actedOnTokens = 0

  /// Turns in a row without a token after which the soak would never move.
  private static let mostBarrenTurns = 16
  private static let pauseStepNs: Int64 = 10_000_000

  /// Loads the model and writes the first records.
  ///
  /// - Throws: `SystemError` when the journal cannot be written, `EngineError` when the model cannot be loaded.
  init(plan: SoakPlan, telemetry: Telemetry, ending: SoakEnding, defects: Defects) throws {
    self.plan = plan
    self.telemetry = telemetry
    self.ending = ending
    recorder = TurnRecorder(telemetry: telemetry, plan: plan, defects: defects)
    loader = ModelLoader(plan: plan, telemetry: telemetry, defects: defects)
    machine = TurnMachine(
      engine: try loader.load(), plan: plan.context, signals: telemetry.signals,
      clock: telemetry.clock)
    let policy = plan.scenario.policy
    governor = MemoryGovernor(
      headroomPercent: policy.trimsOnLowMemory ? policy.headroomPercent : nil)
    schedule = TokenSchedule(plan.scenario)
    memory = HeldMemory(
      scenario: plan.scenario, platform: telemetry.platform, leak: defects.leak)
    mishap = defects.mishap
    if let percent = defects.hoardPercent {
      try memory.hoard(
        percent: percent, headroomPercent: policy.headroomPercent,
        stateBytes: machine.stateBytes)
    }
    handlerDelay = defects.handlerDelay
    try registerHandlerIfDue()
  }

  /// Plays turns until the soak is over, and says `bye`.
  ///
  /// - Returns: The reason that `bye` gives.
  /// - Throws: `SystemError` when the journal cannot be written.
  func run() throws -> FarewellReason {
    do {
      try playTurns()
    } catch let error as EngineError {  // no memory for ballast
      ending.end(.fault)
      try recorder.fault(error.code, error.description, machine.window.phase)
      try machine.settle(observe)
    }
    try machine.endConversation(observe)
    try telemetry.sample()
    let reason = ending.reason ?? .fault
    try telemetry.sayBye(reason, recorder.totals)
    return reason
  }

  private var tokensTotal: Int { telemetry.gauges.tokensTotal.load(ordering: .relaxed) }

  private func playTurns() throws {
    var barren = 0
    while ending.reason == nil, barren < Self.mostBarrenTurns {
      try enterNextTurn()
      let before = tokensTotal
      try playTurn()
      barren = tokensTotal > before ? 0 : barren + 1
      try pause()
    }
    if ending.reason == nil {
      try recorder.fault("barren", "\(barren) turns in a row gave no token", .idle)
    }
  }

  private func enterNextTurn() throws {
    recorder.place.turn += 1
    if recorder.place.turn > plan.scenario.prompts.turnsPerConversation {
      try machine.endConversation(observe)
      recorder.place = TurnRecorder.Place(
        conversation: recorder.place.conversation + 1, turn: 1)
    }
  }

  private func playTurn() throws {
    let prompt = plan.schedule.prompt(
      conversation: recorder.place.conversation, turn: recorder.place.turn)
    try machine.begin(
      prompt: prompt, limit: plan.scenario.prompts.turnLimit, observe)
    repeat { try lookAround() } while try step()
    telemetry.gauges.phase = .idle
  }

  private func step() throws -> Bool {
    let goesOn = try machine.advance(observe)
    if tokensTotal > actedOnTokens { try actOnToken(tokensTotal) }
    return goesOn
  }

  /// Time between two turns: warnings are answered, nothing is predicted.
  private func pause() throws {
    for _ in 0..<schedule.takeWarnings(in: .idle) {
      try telemetry.warn(.synthetic)
      try machine.settle(observe)
    }
    let untilNs = telemetry.clock.nowNs + Int64(plan.scenario.pauseMs) * 1_000_000
    while ending.reason == nil, telemetry.clock.nowNs < untilNs {
      try lookAround()
      try machine.settle(observe)
      telemetry.clock.sleep(untilNs: min(untilNs, telemetry.clock.nowNs + Self.pauseStepNs))
    }
  }

  /// What is looked at before each step: the clock, the phase, the foreground and available memory.
  private func lookAround() throws(SystemError) {
    telemetry.gauges.phase = machine.window.phase
    telemetry.gauges.surfaces.store(machine.surfaceCount, ordering: .relaxed)
    ending.endIfDue(after: plan.scenario.durationS)
    if let dueNs = returnNs, telemetry.clock.nowNs >= dueNs || ending.reason != nil {
      returnNs = nil
      try telemetry.visit(isAway: false)
    }
    if governor.headroomPercent != nil {
      machine.report(
        isMemoryLow: governor.isLow(
          availableBytes: telemetry.readMemory().available,
          limitBytes: telemetry.platform.limitBytes))
    }
  }

  private func observe(_ event: TurnEvent) throws {
    try recorder.record(event)
    switch event {
    case .prefilled(let prediction): try notePrefill(prediction)
    case .sampled(let sample) where sample.prediction.chunk.purpose == .decode:
      try notePrediction()
    case .settled(.eviction): if memory.releaseBallast() { try noteBallast() }
    case .loading: try loader.announce()
    case .loaded(let load, let tookNs): try loader.record(load, tookNs: tookNs, isFirst: false)
    default: break
    }
  }

  private func notePrefill(_ prediction: Prediction) throws {
    _ = telemetry.gauges.firstPredictionNs.compareExchange(
      expected: -1, desired: prediction.startNs, ordering: .relaxed)
    if prediction.chunk.purpose == .audit { return }
    try notePrediction()
    guard prediction.chunk.purpose == .turn else { return }
    for _ in 0..<schedule.takeWarnings(in: .prefill) { try telemetry.warn(.synthetic) }
  }

  private func notePrediction() throws {
    handlerDelay = handlerDelay.map { $0 - 1 }
    try registerHandlerIfDue()
  }

  private func registerHandlerIfDue() throws(SystemError) {
    guard let left = handlerDelay, left <= 0 else { return }
    handlerDelay = nil
    try telemetry.registerHandler()
  }
}

extension Soak {
  /// Acts on the ordinal of the token that was just recorded, before the next step.
  private func actOnToken(_ token: Int) throws {
    actedOnTokens = token
    try holdMemory(token)
    let acts = schedule.acts(at: token)
    if !acts.isEmpty { try recorder.flush() }
    for act in acts { try perform(act) }
    if token == plan.scenario.stopAfterTokens { ending.end(.completed) }
    if let mishap, mishap.atToken == token { try mishap.happen(ending) }
  }

  private func holdMemory(_ token: Int) throws {
    if let announcement = memory.announcement(at: token) {
      try recorder.flush()
      try telemetry.breadcrumb("ballast", announcement)
    }
    if try memory.advance(to: token) { try noteBallast() }
  }

  private func noteBallast() throws(SystemError) {
    telemetry.gauges.ballastBytes.store(memory.ballastBytes, ordering: .relaxed)
    try telemetry.sampleIfMoved()
  }

  private func perform(_ act: TokenSchedule.Act) throws {
    switch act {
    case .warn: try telemetry.warn(.synthetic)
    case .reload: machine.requestReload()
    case .audit: try audit()
    case .leave(let forMs):
      returnNs = telemetry.clock.nowNs + Int64(forMs) * 1_000_000
      try telemetry.visit(isAway: true)
    }
  }

  /// R9: with a state set of its own, only when memory allows.
  private func audit() throws {
    let reading = telemetry.readMemory()
    let headroom = MemoryGovernor(headroomPercent: plan.scenario.policy.headroomPercent)
    let isAllowed = headroom.allows(
      bytes: machine.stateBytes, availableBytes: reading.available,
      limitBytes: telemetry.platform.limitBytes)
    guard isAllowed else {
      return try telemetry.breadcrumb("audit", "not done: no memory for a second state")
    }
    try telemetry.breadcrumb("audit", "\(machine.window.rows) rows")
    if try !machine.audit(observe) {
      try telemetry.breadcrumb("audit", "not done: no rows to compare")
    }
  }
}
