// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// Plays one scenario from `hello` to `bye`. Owned by the pipeline's thread.
final class Soak {
  private let plan: SoakPlan
  private let telemetry: Telemetry
  private let ending: SoakEnding
  private let recorder: TurnRecorder
  private let machine: TurnMachine
  private let governor: MemoryGovernor
  private let ballasts: [Ballast]
  private let leak: LeakedMemory?

  /// Turns in a row without a token after which the soak would never move.
  private static let mostBarrenTurns = 16

  /// Loads the model and writes the first records.
  ///
  /// - Throws: `SystemError` when the journal cannot be written, `EngineError` when the model cannot be loaded.
  init(plan: SoakPlan, telemetry: Telemetry, ending: SoakEnding, defects: Defects) throws {
    self.plan = plan
    self.telemetry = telemetry
    self.ending = ending
    recorder = TurnRecorder(telemetry: telemetry)
    let engine = try Self.load(plan, telemetry)
    machine = TurnMachine(
      engine: defects.engine(engine), plan: plan.context, signals: telemetry.signals,
      clock: telemetry.clock)
    let policy = plan.scenario.policy
    governor = MemoryGovernor(
      headroomPercent: policy.trimsOnLowMemory ? policy.headroomPercent : nil)
    ballasts = plan.scenario.ballast.map { Ballast(span: $0, platform: telemetry.platform) }
    leak = defects.leak.map(LeakedMemory.init)
  }

  private static func load(_ plan: SoakPlan, _ telemetry: Telemetry) throws -> WitnessEngine {
    let (journal, platform, clock) = (telemetry.journal, telemetry.platform, telemetry.clock)
    let reading = telemetry.readMemory()
    try journal.record("hello") { line in
      line.hello(plan, platform, reading, wallTimeS: clock.wallTimeS)
    }
    try telemetry.breadcrumb("load", plan.model.quantization.rawValue)
    let startNs = clock.nowNs
    let engine = try WitnessEngine(
      model: plan.model,
      setting: WitnessEngine.Setting(
        memoryScale: platform.memoryScale, speed: plan.scenario.speed, nonce: plan.nonce.value,
        endEvery: plan.scenario.endEvery, clock: clock))
    telemetry.gauges.weightsBytes.store(plan.model.weightsBytes, ordering: .relaxed)
    let loaded = telemetry.readMemory()
    try journal.record("load") { line in
      line.field("digest", plan.digest)
      line.field("bits_per_weight", plan.model.bitsPerWeight)
      line.field("compute_units", "none")
      line.field("plan", [Int]())
      line.field("cold", true)
      line.field("ms", Double(clock.nowNs - startNs) / 1e6)
      line.field("phase", "loaded")
      line.field("weights_bytes", plan.model.weightsBytes)
      line.memory(loaded)
    }
    try journal.record("handler") { line in
      line.field("channel", Telemetry.warningChannel)
      line.field("registered", true)
    }
    return engine
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

  private func playTurns() throws {
    var barren = 0
    while ending.reason == nil, barren < Self.mostBarrenTurns {
      try enterNextTurn()
      let before = telemetry.gauges.tokensTotal.load(ordering: .relaxed)
      try playTurn()
      let after = telemetry.gauges.tokensTotal.load(ordering: .relaxed)
      barren = after > before ? 0 : barren + 1
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
    repeat { noteProgress() } while try machine.advance(observe)
    telemetry.gauges.phase = .idle
  }

  /// What is looked at before each step: the clock, the phase and available memory.
  private func noteProgress() {
    telemetry.gauges.phase = machine.window.phase
    ending.endIfDue(after: plan.scenario.durationS)
    if governor.headroomPercent != nil {
      machine.report(
        isMemoryLow: governor.isLow(
          availableBytes: telemetry.readMemory().available,
          limitBytes: telemetry.platform.limitBytes))
    }
  }

  private func observe(_ event: TurnEvent) throws {
    if case .prefilled(let prediction) = event { noteFirst(prediction) }
    try recorder.record(event)
    switch event {
    case .sampled: try actOnToken(telemetry.gauges.tokensTotal.load(ordering: .relaxed))
    case .settled(.eviction): try releaseBallast()
    default: break
    }
  }

  private func noteFirst(_ prediction: Prediction) {
    _ = telemetry.gauges.firstPredictionNs.compareExchange(
      expected: -1, desired: prediction.startNs, ordering: .relaxed)
  }

  /// Acts on the ordinal of the token that was just recorded, before the next step.
  private func actOnToken(_ token: Int) throws {
    var hasChanged = try leak?.advance(to: token) ?? false
    for ballast in ballasts {
      if ballast.begins(at: token) {
        try recorder.flush()
        try telemetry.breadcrumb("ballast", ballast.announcement)
      }
      if try ballast.advance(to: token) { hasChanged = true }
    }
    if hasChanged { try noteBallast() }
    if plan.scenario.warningTokens.contains(token) {
      try recorder.flush()
      try telemetry.warn(.synthetic)
    }
    if token == plan.scenario.stopAfterTokens { ending.end(.completed) }
  }

  private func releaseBallast() throws(SystemError) {
    if ballasts.count(where: { $0.release() }) > 0 { try noteBallast() }
  }

  private func noteBallast() throws(SystemError) {
    let hostBytes = ballasts.reduce(leak?.hostBytes ?? 0) { $0 + $1.hostBytes }
    telemetry.gauges.ballastBytes.store(
      hostBytes * telemetry.platform.memoryScale, ordering: .relaxed)
    try telemetry.sampleIfMoved()
  }
}
