// SPDX-License-Identifier: Apache-2.0

import HarnessCore

extension ContextWindow {
  /// Names the next step.
  ///
  /// - Returns: nil when nothing is to be done until the next turn begins.
  public mutating func next() -> Step? {
    while backlog.isEmpty {
      if actOnRequests() { continue }
      if let step = advance() { return step }
      if backlog.isEmpty, stage == .idle { return nil }
    }
    return backlog.removeFirst()
  }

  /// Acts on an eviction or a cancellation where the contract lets it; returns whether it did.
  private mutating func actOnRequests() -> Bool {
    if stage == .sampling, plan.rules.samplesBeforeEviction { return false }
    if actOnEviction() { return true }
    guard requests.isCancelled, stage != .idle else { return false }
    if case .judging = stage { return false }  // R2: end token and turn limit come first
    settleOwedNotice()
    cancelPrediction()
    return true
  }

  private mutating func actOnEviction() -> Bool {
    guard let reason = requests.eviction else { return false }
    if case .judging = stage, !plan.rules.evictsBeforeEnd { return false }
    requests.eviction = nil
    let isBackground = reason == .background
    guard isBackground ? isStateMade && plan.rules.releasesInBackground : holdsRows else {
      return false
    }
    settleOwedNotice()
    evict(reason)
    if !plan.rules.makesLazily {
      isStateMade = true
      backlog.append(.make(nextStatePurpose))
    }
    resumeAfterEviction()
    return true
  }

  /// One step of the stage; nil when it only changed the stage or filled the backlog.
  private mutating func advance() -> Step? {
    switch stage {
    case .idle: return nil
    case .opening:
      openIngest()
      return nil
    case .sampling: return .sample
    case .judging(let token):
      judge(token)
      return nil
    case .feeding(let feed): return advance(feed)
    }
  }

  private mutating func advance(_ feed: Feed) -> Step? {
    if feed.isDone {
      settleOwedNotice()
      if let token = feed.decodesNext { decode(token) } else { ingest() }
      return nil
    }
    if isHeld { return .hold }
    if !isStateMade {
      if requests.wantsReload {
        requests.wantsReload = false
        return .load
      }
      isStateMade = true
      return .make(nextStatePurpose)
    }
    return .predict(nextChunk(of: feed))
  }

  func nextChunk(of feed: Feed) -> Chunk {
    let end = min(feed.fed + plan.chunk, feed.ids.count)
    return Chunk(ids: Array(feed.ids[feed.fed..<end]), start: rows, purpose: feed.purpose)
  }

  /// R3 with `k = |X|`.
  private mutating func openIngest() {
    turn.used = plan.rules.fed(turn.used, rows, plan.budget)
    if let refill = refill(incoming: turn.used.count, decodesNext: nil) {
      stage = .feeding(refill)
    } else {
      ingest()
    }
  }

  /// R8: the whole of X, preceded by the pin when earlier turns were lost.
  private mutating func ingest() {
    let whole = context.isEmpty ? plan.rules.restarted(turn.head, turn.used) : turn.used
    stage = .feeding(Feed(ids: whole, purpose: .turn, decodesNext: nil))
  }

  /// R2, then R3 with `k = 1`.
  private mutating func judge(_ token: Token) {
    if let reason = plan.rules.ending(plan.endIDs.contains(token), generated == turn.limit) {
      return finish(reason, pending: token)
    }
    if requests.isCancelled { return finish(.cancelled, pending: token) }
    prepareDecode(of: token)
  }

  private mutating func prepareDecode(of token: Token) {
    if let refill = refill(incoming: 1, decodesNext: token) {
      stage = .feeding(refill)
    } else if context.isEmpty {
      stage = .feeding(Feed(ids: resumeIDs(), purpose: .resume, decodesNext: token))
    } else {
      decode(token)
    }
  }

  private mutating func decode(_ token: Token) {
    stage = .feeding(Feed(ids: [token], purpose: .decode, decodesNext: token))
  }

  private func resumeIDs() -> [Token] {
    plan.rules.resumed(accepted, turn.start, plan.pin, plan.half)
  }

  /// R5, R9 and R13: what is fed again into a new state set before the turn goes on.
  private mutating func refill(incoming: Int, decodesNext token: Token?) -> Feed? {
    guard holdsRows else { return nil }
    if let reason = trimReason(incoming) {
      let kept = trim(incoming, reason, token == nil ? .prefill : .decode)
      return Feed(ids: kept, purpose: .trim, decodesNext: token)
    }
    guard requests.wantsReload || plan.rules.remakesBeforeDecode && token != nil else { return nil }
    let whole = context
    backlog += drop(.reload)
    nextStatePurpose = .reload
    return Feed(ids: whole, purpose: .reload, decodesNext: token)
  }

  private mutating func trimReason(_ incoming: Int) -> Trim.Reason? {
    if plan.rules.isTrimDue(rows, incoming, plan.budget) { return .budget }
    let isLow = requests.isMemoryLow && !isLowMemoryAnswered
    guard isLow, keptCount(incoming) < rows else { return nil }
    isLowMemoryAnswered = true
    return .lowMemory
  }

  private func keptCount(_ incoming: Int) -> Int {
    plan.rules.keptCount(rows, plan.half, plan.budget - incoming)
  }

  /// Announces a trim and drops the context; returns what is to be fed again.
  private mutating func trim(
    _ incoming: Int, _ reason: Trim.Reason, _ phase: PipelinePhase
  ) -> [Token] {
    let count = keptCount(incoming)
    let pinned = plan.rules.pinnedCount(plan.pin, count)
    let kept = plan.rules.kept(context, pinned, count)
    backlog.append(
      .trim(
        Trim(
          before: rows, kept: kept, pinned: pinned, incoming: incoming, reason: reason,
          phase: phase)))
    nextStatePurpose = .trim
    if plan.rules.makesBeforeRelease { backlog.append(.make(.trim)) }
    backlog += drop(.trim)
    isStateMade = plan.rules.makesBeforeRelease
    owesTrimNotice = true
    return kept
  }

  /// Announces an eviction and drops the context.
  mutating func evict(_ reason: Eviction.Reason) {
    backlog.append(.evict(Eviction(before: rows, reason: reason, phase: phase)))
    backlog += drop(reason == .background ? .background : .evict)
    backlog.append(.settled(.eviction))
    nextStatePurpose = .resume
    dryEvictions += 1
  }

  /// Forgets the state set and its rows; returns the step that releases it.
  mutating func drop(_ purpose: StatePurpose) -> [Step] {
    context = []
    isStateMade = false
    return [.release(purpose)]
  }

  private mutating func resumeAfterEviction() {
    if stage == .idle { return }
    if dryEvictions > plan.rules.mostDryEvictions { return finish(.memoryPressure) }
    switch stage {
    case .feeding(let feed):
      guard let token = feed.decodesNext else { return stage = .opening }
      stage = .feeding(Feed(ids: resumeIDs(), purpose: .resume, decodesNext: token))
    case .idle, .opening, .sampling, .judging: break
    }
  }

  /// Ends the turn before its next prediction; what was consumed stays, what was not is forgotten.
  private mutating func cancelPrediction() {
    var unfed = turn.used.count
    if case .feeding(let feed) = stage {
      if let token = feed.decodesNext { return finish(.cancelled, pending: token) }
      if feed.purpose == .turn { unfed = min(unfed, feed.ids.count - feed.fed) }
    }
    accepted.removeLast(unfed)
    finish(.cancelled)
    if unfed == turn.used.count { pending = turn.carried }
  }

  mutating func settleOwedNotice() {
    if owesTrimNotice { backlog.append(.settled(.trim)) }
    owesTrimNotice = false
  }

  mutating func finish(_ reason: StopReason, pending token: Token? = nil) {
    pending = plan.rules.keepsPending ? token.map { [$0] } ?? [] : []
    backlog.append(.end(reason))
    stage = .idle
  }
}
