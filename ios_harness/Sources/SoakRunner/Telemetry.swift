// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM
import Synchronization

/// Who warned of memory pressure.
enum WarningOrigin: String, Sendable { case kernel, host, synthetic }

/// Who took the app out of the foreground, or back.
enum MoveOrigin: String, Sendable { case phone, scenario }

/// Records that any thread may write, and what they are made from.
package final class Telemetry: Sendable {
  package let journal: Journal
  package let platform: any DevicePlatform
  package let gauges = Gauges()
  package let signals = TurnSignals()
  let notices: NoticeBoard
  let app: AppIdentity

  private let conditions = Mutex(PhoneConditions())
  /// Number of the last warning. Held while one is recorded, so that numbers and records have one order.
  private let warnings = Mutex(0)
  private let sampledFootprint = Atomic<Int>(0)
  private let hasHandler = Atomic<Bool>(false)
  private let hearsWarnings: Bool

  /// A footprint that moved by more than this share of the limit is sampled at once.
  private static let movedPercent = 2

  init(
    journal: Journal, platform: any DevicePlatform, hearsWarnings: Bool,
    notices: NoticePresentation = .immediate, app: AppIdentity = .harness
  ) {
    self.app = app
    self.notices = NoticeBoard(journal: journal, presentation: notices)
    self.journal = journal
    self.platform = platform
    self.hearsWarnings = hearsWarnings
  }

  package var clock: LaunchClock { journal.clock }

  /// Warnings recorded so far.
  var warningCount: Int { warnings.withLock { $0 } }

  /// Reads the memory and remembers the peak.
  package func readMemory() -> MemoryReading {
    let reading = platform.readMemory()
    gauges.peakBytes.max(reading.footprint, ordering: .relaxed)
    return reading
  }

  package func breadcrumb(_ about: String, _ detail: String) throws(SystemError) {
    try journal.record("breadcrumb", .machine) { line in
      line.field("about", about)
      line.field("detail", detail)
    }
  }

  /// Records that the app listens for memory warnings; before it none is heard.
  package func registerHandler() throws(SystemError) {
    for channel in platform.channels {
      try journal.record("handler") { line in
        line.field("channel", channel)
        line.field("registered", true)
      }
    }
    hasHandler.store(true, ordering: .releasing)
  }

  /// The thermal state that the phone last gave.
  var thermal: ThermalState { phone.thermal }

  /// What the phone last said of itself.
  var phone: PhoneConditions { conditions.withLock { $0 } }

  /// Records a memory warning, then raises it: the pipeline reads it before its next prediction.
  ///
  /// - Parameters:
  ///   - origin: Who warned.
  ///   - channel: How it was heard; the platform's first by default.
  /// - Throws: `SystemError` when the journal cannot be written.
  func warn(
    _ origin: WarningOrigin, _ channel: WarningChannel? = nil
  ) throws(SystemError) {
    guard hasHandler.load(ordering: .acquiring) else { return }
    try warnings.withLock { (count) throws(SystemError) in
      let reading = readMemory()
      let number = count + 1
      let channel = channel ?? platform.channels.first ?? .host
      let sequence = try journal.record("memory_warning") { line in
        line.field("n", number)
        line.field("origin", origin)
        line.field("channel", channel)
        line.memory(reading)
        // Under the journal's lock: the eviction's record comes after this one, and on a busy host no second prediction
        // starts between the time that stands here and the raise.
        if hearsWarnings { signals.warn(number) }
      }
      if sequence != nil { count = number }
    }
  }

  /// Takes in what the phone says of itself; memory warnings go to `warn`.
  ///
  /// - Returns: Whether the app entered or left the foreground.
  func note(_ condition: Condition) -> Bool {
    conditions.withLock { state in
      switch condition {
      case .memoryWarning: break
      case .thermal(let thermal): state.thermal = thermal
      case .battery(let percent, let isCharging):
        state.batteryPercent = percent
        state.isCharging = isCharging
      case .lowPower(let isOn): state.isLowPower = isOn
      case .foreground(let isForeground):
        defer { state.isForegroundForPhone = isForeground }
        return state.isForegroundForPhone != isForeground
      }
      return false
    }
  }

  /// Records that the app entered or left the foreground, then lets the pipeline know.
  func moved(toForeground isForeground: Bool, _ origin: MoveOrigin) throws(SystemError) {
    try journal.record("lifecycle") { line in
      line.field("event", isForeground ? "foreground" : "background")
      line.field("phase", gauges.phase)
      line.field("origin", origin)
    }
    shareForeground()
  }

  /// Takes the app out of the foreground, or back, because the scenario says so.
  func visit(isAway: Bool) throws(SystemError) {
    conditions.withLock { $0.isForegroundForScenario = !isAway }
    try moved(toForeground: !isAway, .scenario)
  }

  /// Lets the pipeline know whether the app is in the foreground.
  func shareForeground() {
    signals.isInBackground = conditions.withLock { !$0.isForeground }
  }

  func heartbeat() throws(SystemError) {
    try journal.record("heartbeat") { line in
      line.field("wall_time_s", clock.wallTimeS)
      line.field("suspended_s", clock.suspendedS)
    }
  }

  /// Writes the last record.
  package func sayBye(_ reason: FarewellReason, _ totals: SoakTotals) throws(SystemError) {
    let warnings = warningCount
    try journal.record("bye", .machine, isLast: true) { line in
      line.field("reason", reason)
      line.field("tokens_total", gauges.tokensTotal.load(ordering: .relaxed))
      line.field("turns", totals.turns)
      line.field("trims", totals.trims)
      line.field("evictions", totals.evictions)
      line.field("warnings", warnings)
      line.field("inference_s", gauges.inferenceS(at: clock))
    }
  }

  /// Samples when the footprint has moved by over 2 % of the limit since the last sample.
  func sampleIfMoved() throws(SystemError) {
    guard let limitBytes = platform.limitBytes else { return }
    let moved = abs(readMemory().footprint - sampledFootprint.load(ordering: .relaxed))
    if moved * 100 > limitBytes * Self.movedPercent { try sample() }
  }

  package func sample() throws(SystemError) {
    let reading = readMemory()
    let ledgers = platform.readLedgers()
    let state = conditions.withLock { $0 }
    sampledFootprint.store(reading.footprint, ordering: .relaxed)
    try journal.record("sample") { line in
      line.memory(reading)
      line.field("peak", max(ledgers.peakBytes ?? 0, gauges.peakBytes.load(ordering: .relaxed)))
      line.field("available", reading.available)
      line.field("compressed", ledgers.compressedBytes)
      line.field("neural_ledger", ledgers.neuralBytes)
      line.field("kv", gauges.stateBytes.load(ordering: .relaxed))
      line.field("ballast", gauges.ballastBytes.load(ordering: .relaxed))
      line.field("weights", gauges.weightsBytes.load(ordering: .relaxed))
      line.field("n", gauges.rows.load(ordering: .relaxed))
      line.field("surfaces", gauges.surfaces.load(ordering: .relaxed))
      line.field("tokens_total", gauges.tokensTotal.load(ordering: .relaxed))
      line.conditions(state)
    }
  }
}

extension LineBuffer {
  package mutating func memory(_ reading: MemoryReading) {
    field("footprint", reading.footprint)
    field("host_bytes", reading.hostBytes)
  }

  fileprivate mutating func conditions(_ state: PhoneConditions) {
    field("thermal", state.thermal)
    field("battery_percent", state.batteryPercent)
    field("charging", state.isCharging)
    field("low_power", state.isLowPower)
    field("foreground", state.isForeground)
  }
}
