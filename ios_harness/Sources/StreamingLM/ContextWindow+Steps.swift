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
    if stage == .sampling { return false }  // R7: the sample in hand is used first
    if let reason = requests.eviction {
      requests.eviction = nil
      if reason == .background ? isStateMade : holdsRows {
        settleOwedNotice()
        evict(reason)
        resumeAfterEviction()
        return true
      }
    }
    guard requests.isCancelled, stage != .idle else { return false }
    if case .judging = stage { return false }  // R2: end token and turn limit come first
    settleOwedNotice()
    cancelPrediction()
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
    if let refill = refill(incoming: turn.used.count, decodesNext: nil) {
      stage = .feeding(refill)
    } else {
      ingest()
    }
  }

  /// R8: the whole of X, preceded by the pin when earlier turns were lost.
  private mutating func ingest() {
    let whole = context.isEmpty ? turn.head + turn.used : turn.used
    stage = .feeding(Feed(ids: whole, purpose: .turn, decodesNext: nil))
  }

  /// R2, then R3 with `k = 1`.
  private mutating func judge(_ token: Token) {
    if plan.endIDs.contains(token) { return finish(.endToken, pending: token) }
    if generated == turn.limit { return finish(.turnLimit, pending: token) }
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

  /// R8: the pin and the last `h - p` tokens of this turn, ids already in the pin not repeated.
  private func resumeIDs() -> [Token] {
    let head = accepted.prefix(plan.pin)
    let body = accepted.dropFirst(max(turn.start, plan.pin))
    return Array(head + body.suffix(plan.half - head.count))
  }

  /// R5, R9 and R13: what is fed again into a new state set before the turn goes on.
  private mutating func refill(incoming: Int, decodesNext token: Token?) -> Feed? {
    guard holdsRows else { return nil }
    if let reason = trimReason(incoming) {
      requests.wantsReload = false  // the trim makes a new state set anyway
      let kept = trim(incoming, reason, token == nil ? .prefill : .decode)
      return Feed(ids: kept, purpose: .trim, decodesNext: token)
    }
    guard requests.wantsReload else { return nil }
    requests.wantsReload = false
    let whole = context
    backlog += drop(.reload)
    nextStatePurpose = .reload
    return Feed(ids: whole, purpose: .reload, decodesNext: token)
  }

  private mutating func trimReason(_ incoming: Int) -> Trim.Reason? {
    if plan.trimRule.isDue(rows, incoming, plan.budget) { return .budget }
    let isLow = requests.isMemoryLow && !isLowMemoryAnswered
    guard isLow, keptCount(incoming) < rows else { return nil }
    isLowMemoryAnswered = true
    return .lowMemory
  }

  private func keptCount(_ incoming: Int) -> Int {
    max(0, min(rows, plan.half, plan.budget - incoming))
  }

  /// Announces a trim and drops the context; returns what is to be fed again.
  private mutating func trim(
    _ incoming: Int, _ reason: Trim.Reason, _ phase: PipelinePhase
  ) -> [Token] {
    let count = keptCount(incoming)
    let pinned = min(plan.pin, count)
    let kept = plan.trimRule.kept(context, pinned, count)
    backlog.append(
      .trim(
        Trim(
          before: rows, kept: kept, pinned: pinned, incoming: incoming, reason: reason,
          phase: phase)))
    backlog += drop(.trim)
    nextStatePurpose = .trim
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
    if dryEvictions > 1 { return finish(.memoryPressure) }
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
    pending = token.map { [$0] } ?? []
    backlog.append(.end(reason))
    stage = .idle
  }
}
