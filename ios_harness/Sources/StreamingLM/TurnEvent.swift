// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// What a turn reports, in the order in which it happens.
public enum TurnEvent: Sendable {
  /// The turn begins.
  case opened(TurnOpening, limit: Int?)
  /// A trim is about to release the state set `state`.
  case trimming(Trim, state: Int)
  /// An eviction is about to release the state set `state`; it answers the warnings with these numbers.
  case evicting(Eviction, state: Int, warnings: [Int])
  /// A state set was released.
  case released(StateChange)
  /// A state set was made.
  case made(StateChange)
  /// A prefill chunk was consumed.
  case prefilled(Prediction)
  /// A token was sampled.
  case sampled(Sample)
  /// What was sampled looks like no language. Said at most once a turn, which goes on.
  case suspected(OutputWatch.Finding)
  /// The model is about to be loaded again.
  case loading
  /// The model was loaded again.
  case loaded(ModelLoad, tookNs: Int64)
  /// A parity audit compared `rows` rows with those of the state set `state`.
  case audited(Parity, rows: Int, state: Int)
  /// A parity audit gave no result; the state set in use is not concerned.
  case auditFailed(EngineError)
  /// A trim or an eviction is done: its notice is to be shown.
  case settled(ContextWindow.Upheaval)
  /// A prediction, a sample or a state set failed.
  case faulted(EngineError, phase: PipelinePhase)
  /// The turn is over.
  case ended(StopReason, generated: Int)
}

/// A state set made or released.
public struct StateChange: Sendable, Equatable {
  /// Ordinal of the state set, from 1.
  public let id: Int
  /// Why.
  public let purpose: StatePurpose
  /// Bytes of the state set.
  public let bytes: Int
}

/// A prediction that has ended. Times are nanoseconds of the launch.
public struct Prediction: Sendable, Equatable {
  /// Its input.
  public let chunk: Chunk
  /// The state set it advanced.
  public let state: Int
  /// When it ran.
  public let span: PredictionSpan

  /// When it began.
  public var startNs: Int64 { span.startNs }
  /// When it ended.
  public var endNs: Int64 { span.endNs }
}

/// A sampled token with the prediction whose logits gave it.
public struct Sample: Sendable, Equatable {
  /// The id.
  public let token: Token
  /// Rows at the moment of the sample.
  public let rows: Int
  /// Its number within the turn, from 0.
  public let place: Int
  /// Whether it is one of the model's end tokens.
  public let isEnd: Bool
  /// The prediction whose logits were sampled.
  public let prediction: Prediction
}
