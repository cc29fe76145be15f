// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// Counts of a launch, for its `bye`.
struct SoakTotals: Equatable {
  var turns = 0
  var trims = 0
  var evictions = 0
}

/// Writes the events of turns as records, in their order. Owned by the pipeline's thread.
final class TurnRecorder {
  /// The turn in flight.
  struct Place: Equatable {
    /// From 1 in the launch.
    var conversation = 1
    /// From 1 in the conversation.
    var turn = 0
  }

  private(set) var totals = SoakTotals()
  var place = Place()

  private let telemetry: Telemetry
  private var batch = TokenBatch(text: DecimalText())
  private var view = TurnView()
  /// Record of the trim or the eviction whose notice is not shown yet.
  private var unshownSequence: UInt64?

  /// What a person reads when the context was trimmed or evicted.
  private static let noticeText = "Memory limit reached – context was trimmed."

  init(telemetry: Telemetry) { self.telemetry = telemetry }

  private var journal: Journal { telemetry.journal }
  private var gauges: Gauges { telemetry.gauges }

  /// Writes one event.
  ///
  /// - Throws: `SystemError` when the journal cannot be written.
  func record(_ event: TurnEvent) throws(SystemError) {
    if case .sampled(let sample) = event { return try take(sample) }
    try flush()
    switch event {
    case .opened(let opening, let limit): try start(opening, limit)
    case .trimming(let trim, let state): try record(trim, state)
    case .evicting(let eviction, let state, let warnings): try record(eviction, state, warnings)
    case .released(let change): try record(change, action: "released")
    case .made(let change): try record(change, action: "made")
    case .prefilled(let prediction): try record(prediction)
    case .settled: try showNotice()
    case .faulted(let error, let phase):
      try fault(error.code, error.description, phase)
    case .ended(let reason, let generated): try end(reason, generated)
    case .sampled: break
    }
  }

  func fault(_ code: String, _ message: String, _ phase: PipelinePhase) throws(SystemError) {
    try journal.record("fault", .machine) { line in
      line.field("code", code)
      line.field("message", message)
      line.field("phase", phase)
    }
  }

  /// Writes the samples in hand.
  func flush() throws(SystemError) {
    if batch.samples.isEmpty { return }
    try journal.record("tokens") { line in
      line.place(place)
      batch.write(to: &line)
    }
    batch.clear()
  }

  private func take(_ sample: Sample) throws(SystemError) {
    gauges.rows.store(sample.rows, ordering: .relaxed)
    gauges.tokensTotal.add(1, ordering: .relaxed)
    view.show(sample.token)
    if batch.add(sample) { try flush() }
  }

  private func start(_ opening: TurnOpening, _ limit: Int?) throws(SystemError) {
    view = TurnView()
    try journal.record("turn_start") { line in
      line.place(place)
      line.field("prompt_ids", opening.prompt)
      line.field("used_ids", opening.used)
      line.field("carried", opening.carried)
      line.field("limit", limit)
      line.field("sampling", "greedy")
    }
  }

  private func record(_ trim: Trim, _ state: Int) throws(SystemError) {
    totals.trims += 1
    try telemetry.breadcrumb("trim", "\(trim.before) rows to \(trim.kept.count)")
    let reading = telemetry.readMemory()
    unshownSequence = try journal.record("trim", .machine) { line in
      line.place(place)
      line.upheaval(
        before: trim.before, kept: trim.kept.count, pinned: trim.pinned, incoming: trim.incoming)
      line.field("reason", trim.reason)
      line.field("phase", trim.phase)
      line.field("state", state)
      line.memory(reading)
    }
  }

  private func record(
    _ eviction: Eviction, _ state: Int, _ warnings: [Int]
  ) throws(SystemError) {
    totals.evictions += 1
    try telemetry.breadcrumb("evict", "\(eviction.before) rows")
    let reading = telemetry.readMemory()
    unshownSequence = try journal.record("evict", .machine) { line in
      line.place(place)
      line.upheaval(before: eviction.before, kept: 0, pinned: 0, incoming: 0)
      line.field("reason", eviction.reason)
      line.field("warnings", warnings)
      line.field("phase", eviction.phase)
      line.field("state", state)
      line.memory(reading)
    }
  }

  private func record(_ change: StateChange, action: String) throws(SystemError) {
    let isMade = action == "made"
    gauges.stateBytes.store(isMade ? change.bytes : 0, ordering: .relaxed)
    gauges.rows.store(0, ordering: .relaxed)
    let reading = telemetry.readMemory()
    try journal.record("state", .machine) { line in
      line.field("action", action)
      line.field("id", change.id)
      line.field("purpose", change.purpose)
      line.field("bytes", change.bytes)
      line.memory(reading)
    }
    try telemetry.sampleIfMoved()
  }

  private func record(_ prediction: Prediction) throws(SystemError) {
    let chunk = prediction.chunk
    gauges.rows.store(chunk.end, ordering: .relaxed)
    try journal.record("prefill") { line in
      line.place(place)
      line.field("purpose", chunk.purpose)
      line.field("start", chunk.start)
      line.field("ids", chunk.ids)
      line.field("pad", 0)
      line.field("state", prediction.state)
      line.field("start_ns", prediction.startNs)
      line.field("end_ns", prediction.endNs)
    }
  }

  private func showNotice() throws(SystemError) {
    guard let sequence = unshownSequence else { return }
    unshownSequence = nil
    try journal.record("notice") { line in
      line.field("for_seq", sequence)
      line.field("shown", true)
      line.field("text", Self.noticeText)
    }
  }

  private func end(_ reason: StopReason, _ generated: Int) throws(SystemError) {
    totals.turns += 1
    try journal.record("turn_end") { line in
      line.place(place)
      line.field("reason", reason)
      line.field("generated", generated)
      line.field("consumed", view.consumed)
      line.field("text_hash", view.textHash)
    }
  }
}

extension LineBuffer {
  fileprivate mutating func place(_ place: TurnRecorder.Place) {
    field("conversation", place.conversation)
    field("turn", place.turn)
  }

  fileprivate mutating func upheaval(before: Int, kept: Int, pinned: Int, incoming: Int) {
    field("before", before)
    field("kept", kept)
    field("pinned", pinned)
    field("k", incoming)
  }
}
