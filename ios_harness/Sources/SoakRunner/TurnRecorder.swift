// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// Counts of a launch, for its `bye`.
package struct SoakTotals: Equatable {
  var turns = 0
  var trims = 0
  var evictions = 0
}

/// Writes the events of turns as records, in their order. Owned by the pipeline's thread.
package final class TurnRecorder {
  /// The turn in flight.
  package struct Place: Equatable {
    /// From 1 in the launch.
    package var conversation = 1
    /// From 1 in the conversation.
    package var turn = 0

    /// The first turn of a conversation.
    package static func start(ofConversation conversation: Int) -> Place {
      Place(conversation: conversation, turn: 1)
    }
  }

  package private(set) var totals = SoakTotals()
  package var place = Place()

  private let telemetry: Telemetry
  private let facts: ModelFacts
  private let sampling: SamplingSetting
  private let defects: Defects
  private var batch = TokenBatch()
  private var view: TurnView
  /// Rows of the state set that the app's count leaves out: none, in a healthy app.
  private var uncounted = 0
  /// Record of the trim or the eviction whose notice is not shown yet.
  private var unshownSequence: UInt64?

  /// What a person reads when the context was trimmed or evicted.
  private static let noticeText = "Memory limit reached – context was trimmed."

  /// - Parameters:
  ///   - telemetry: Where records go.
  ///   - plan: Text and sampling.
  ///   - defects: A healthy app's have no influence.
  package init(telemetry: Telemetry, plan: SoakPlan, defects: Defects) {
    self.telemetry = telemetry
    facts = plan.facts
    sampling = plan.scenario.sampling
    self.defects = defects
    view = Self.view(plan.facts, defects)
  }

  private var journal: Journal { telemetry.journal }
  private var gauges: Gauges { telemetry.gauges }

  /// Writes one event.
  ///
  /// - Throws: `SystemError` when the journal cannot be written.
  package func record(_ event: TurnEvent) throws(SystemError) {
    if case .sampled(let sample) = event { return try take(sample) }
    try flush()
    switch event {
    case .opened(let opening, let limit): try start(opening, limit)
    case .trimming(let trim, let state): try record(trim, state)
    case .evicting(let eviction, let state, let warnings): try record(eviction, state, warnings)
    case .released(let change): try record(change, action: "released")
    case .made(let change): try record(change, action: "made")
    case .prefilled(let prediction): try record(prediction)
    case .settled(let upheaval): try showNotice(upheaval)
    case .ended(let reason, let generated): try end(reason, generated)
    case .sampled, .loading, .loaded: break
    case .audited(let parity, let rows, let state): try record(parity, rows, state)
    case .auditFailed(let error): try telemetry.breadcrumb("audit", "failed: \(error)")
    case .suspected(let finding): try fault(finding.code, "\(finding)", .decode)
    case .faulted(let error, let phase): try fault(error.code, error.description, phase)
    }
  }

  package func fault(_ code: String, _ message: String, _ phase: PipelinePhase) throws(SystemError)
  {
    try journal.record("fault", .machine) { line in
      line.field("code", code)
      line.field("message", message)
      line.field("phase", phase)
    }
  }

  /// Writes the samples in hand.
  package func flush() throws(SystemError) {
    if batch.samples.isEmpty { return }
    try journal.record("tokens") { line in
      line.place(place)
      batch.write(to: &line, &view, uncounted: uncounted)
    }
    batch.clear()
  }

  private func take(_ sample: Sample) throws(SystemError) {
    gauges.rows.store(sample.rows - uncounted, ordering: .relaxed)
    gauges.tokensTotal.add(1, ordering: .relaxed)
    if batch.add(sample) { try flush() }
  }

  private static func view(_ facts: ModelFacts, _ defects: Defects) -> TurnView {
    TurnView(
      text: facts.text, endIDs: facts.endIDs, assemblesText: defects.assemblesText)
  }

  private func start(_ opening: TurnOpening, _ limit: Int?) throws(SystemError) {
    view = Self.view(facts, defects)
    try journal.record("turn_start") { line in
      line.place(place)
      line.field("prompt_ids", opening.prompt)
      line.field("used_ids", opening.used)
      line.field("carried", opening.carried)
      line.field("limit", limit)
      line.field("sampling", sampling.mode)
    }
  }

  private func record(_ trim: Trim, _ state: Int) throws(SystemError) {
    totals.trims += 1
    if !defects.countsKeptRows { uncounted = trim.kept.count }
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
    uncounted = 0
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
    gauges.stateBytes.add(action == "made" ? change.bytes : -change.bytes, ordering: .relaxed)
    if change.purpose != .audit { gauges.rows.store(0, ordering: .relaxed) }
    if change.purpose == .end || change.purpose == .reload { uncounted = 0 }
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
    let uncounted = chunk.purpose == .turn ? uncounted : 0
    if chunk.purpose != .audit { gauges.rows.store(chunk.end - uncounted, ordering: .relaxed) }
    try journal.record("prefill") { line in
      line.place(place)
      line.field("purpose", chunk.purpose)
      line.field("start", chunk.start - uncounted)
      line.field("ids", chunk.ids)
      line.field("pad", 0)
      line.field("state", prediction.state)
      line.field("start_ns", prediction.startNs)
      line.field("end_ns", prediction.endNs)
    }
  }

  private func record(_ parity: Parity, _ rows: Int, _ state: Int) throws(SystemError) {
    try journal.record("parity") { line in
      line.place(place)
      line.field("n", rows)
      line.field("state", state)
      line.field("max_abs", parity.maxAbs)
      line.field("top1_equal", parity.isTop1Equal)
      line.field("top3_contained", parity.isTop3Contained)
      line.field("top5_overlap", parity.top5Overlap)
    }
  }

  private func showNotice(_ upheaval: ContextWindow.Upheaval) throws(SystemError) {
    guard let sequence = unshownSequence else { return }
    unshownSequence = nil
    if upheaval == defects.hiddenNotice { return }
    try telemetry.notices.post(SoakNotice(sequence: sequence, text: Self.noticeText))
  }

  private func end(_ reason: StopReason, _ generated: Int) throws(SystemError) {
    totals.turns += 1
    for _ in 0..<defects.turnEnds {
      try journal.record("turn_end") { line in
        line.place(place)
        line.field("reason", reason)
        line.field("generated", generated)
        line.field("consumed", view.consumed)
        line.field("text_hash", view.textHash)
        line.field("held_bytes", view.heldBytes)
      }
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
