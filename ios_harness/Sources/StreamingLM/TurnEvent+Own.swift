// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// Events of a pipeline that is not `TurnMachine`, for apps that bring their own.
extension TurnEvent {
  /// A turn begins, with `carried` ids that were pending in front of the prompt; one that is refused uses nothing.
  package static func opening(
    prompt: [Token], used: [Token], carried: Int, limit: Int?
  ) -> TurnEvent {
    let opening = TurnOpening(
      prompt: prompt, used: used, carried: carried, askedCount: prompt.count + carried)
    return .opened(opening, limit: limit)
  }

  /// A trim is about to release the state set.
  package static func trim(
    before: Int, kept: [Token], incoming: Int, phase: PipelinePhase, state: Int
  ) -> TurnEvent {
    let trim = Trim(
      before: before, kept: kept, pinned: 0, incoming: incoming, reason: .budget, phase: phase)
    return .trimming(trim, state: state)
  }

  /// A memory warning is about to release the state set.
  package static func eviction(
    before: Int, phase: PipelinePhase, state: Int, warnings: [Int]
  ) -> TurnEvent {
    let eviction = Eviction(before: before, reason: .memoryWarning, phase: phase)
    return .evicting(eviction, state: state, warnings: warnings)
  }

  /// A state set was made or released.
  package static func state(
    _ id: Int, made: Bool, _ purpose: StatePurpose, bytes: Int
  ) -> TurnEvent {
    let change = StateChange(id: id, purpose: purpose, bytes: bytes)
    return made ? .made(change) : .released(change)
  }

  /// A chunk was consumed.
  package static func chunk(_ chunk: Chunk, state: Int, span: PredictionSpan) -> TurnEvent {
    .prefilled(Prediction(chunk: chunk, state: state, span: span))
  }

  /// A token was sampled.
  package static func sample(
    _ token: Token, rows: Int, place: Int, isEnd: Bool, state: Int, span: PredictionSpan
  ) -> TurnEvent {
    let chunk = Chunk(ids: [token], start: rows, purpose: .decode)
    let prediction = Prediction(chunk: chunk, state: state, span: span)
    return .sampled(
      Sample(token: token, rows: rows, place: place, isEnd: isEnd, prediction: prediction))
  }
}
