// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// Reports of a pipeline that is not a `TurnMachine`, in the order in which they happen.
extension ProbeSession {
  /// A turn begins.
  ///
  /// - Parameters:
  ///   - prompt: As `nextTurn` gave it.
  ///   - used: What will be fed: the token that the last turn left unfed, if there is one, and the prompt. Empty when
  ///     the prompt is refused; nil is the prompt.
  ///   - carried: How many ids of `used` the last turn left.
  /// - Throws: `SystemError` when the journal cannot be written.
  public func turnBegins(prompt: [Token], used: [Token]? = nil, carried: Int = 0) throws {
    set(phase: .prefill)
    state.generated = 0
    try record(
      .opening(prompt: prompt, used: used ?? prompt, carried: carried, limit: turnLimit))
  }

  /// A state set (the key/value cache) was made.
  ///
  /// - Parameters:
  ///   - bytes: Its size.
  ///   - purpose: Why.
  /// - Throws: `SystemError` when the journal cannot be written.
  public func stateMade(bytes: Int, for purpose: StatePurpose) throws {
    state.id += 1
    state.bytes = bytes
    try record(.state(state.id, made: true, purpose, bytes: bytes))
  }

  /// The state set was released and its memory is gone.
  ///
  /// - Parameter purpose: Why; for `evict` the warnings that were raised until now are answered.
  /// - Throws: `SystemError` when the journal cannot be written.
  public func stateReleased(for purpose: StatePurpose) throws {
    if purpose == .evict { signals.answerWarnings() }
    try record(.state(state.id, made: false, purpose, bytes: state.bytes))
  }

  /// A prefill prediction has ended.
  ///
  /// - Parameters:
  ///   - chunk: Ids, the row of the first, and why they were fed.
  ///   - startNs: When it began, by `clock`.
  /// - Throws: `SystemError` when the journal cannot be written.
  public func prefilled(_ chunk: Chunk, startNs: Int64) throws {
    try record(.chunk(chunk, state: state.id, span: span(from: startNs)))
  }

  /// A token was sampled.
  ///
  /// - Parameters:
  ///   - token: The id.
  ///   - rows: Rows of the state set at that moment.
  ///   - isEnd: Whether it ends the turn.
  ///   - startNs: When the prediction began whose logits were sampled.
  /// - Throws: `SystemError` when the journal cannot be written.
  public func sampled(_ token: Token, rows: Int, isEnd: Bool, startNs: Int64) throws {
    try record(
      .sample(
        token, rows: rows, place: state.generated, isEnd: isEnd, state: state.id,
        span: span(from: startNs)))
    state.generated += 1
    set(phase: .decode)
  }

  /// The context is about to be trimmed.
  ///
  /// - Parameters:
  ///   - before: Rows before it.
  ///   - kept: Ids that stay.
  ///   - incoming: Tokens that are to enter after it.
  /// - Throws: `SystemError` when the journal cannot be written.
  public func willTrim(before: Int, kept: [Token], incoming: Int) throws {
    try record(
      .trim(before: before, kept: kept, incoming: incoming, phase: state.phase, state: state.id))
  }

  /// A memory warning is about to release everything.
  ///
  /// - Parameter before: Rows before it.
  /// - Throws: `SystemError` when the journal cannot be written.
  public func willEvict(before: Int) throws {
    // The first sample belongs to the prompt's prediction, and so does the eviction that follows it.
    let phase = state.phase == .decode && state.generated <= 1 ? .prefill : state.phase
    try record(
      .eviction(before: before, phase: phase, state: state.id, warnings: signals.openWarnings))
  }

  /// The user interface shows the notice of the last trim or eviction.
  ///
  /// - Parameter upheaval: Which of both it was.
  /// - Throws: `SystemError` when the journal cannot be written.
  public func noticeShown(for upheaval: ContextWindow.Upheaval) throws {
    try record(.settled(upheaval))
    if let notice { wasShown(notice) }
  }

  /// The turn is over.
  public func turnEnds(_ reason: StopReason) throws {
    try record(.ended(reason, generated: state.generated))
    set(phase: .idle)
  }

  private func span(from startNs: Int64) -> PredictionSpan {
    // The first sample comes from the prompt's last chunk, which has ended already.
    if startNs != state.span.startNs {
      state.span = PredictionSpan(startNs: startNs, endNs: clock.nowNs)
    }
    return state.span
  }
}
