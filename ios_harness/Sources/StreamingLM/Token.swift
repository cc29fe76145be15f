// SPDX-License-Identifier: Apache-2.0

/// One token id of the model's vocabulary.
public typealias Token = Int32

/// Why ids are fed to the model. A *prediction* is one call of it: a prefill chunk or a decode step.
public enum PredictionPurpose: String, Sendable {
  /// A chunk of a turn's prompt.
  case turn
  /// What a trim kept.
  case trim
  /// Pin and tail of this turn, after an eviction while decoding.
  case resume
  /// All of the context, after the model was loaded again.
  case reload
  /// The token sampled last.
  case decode
  /// All of the context, into the state set of a parity audit.
  case audit
}

/// Why a state set is made or released.
public enum StatePurpose: String, Sendable {
  /// The first prediction of a conversation.
  case conversation
  /// A trim releases the old set and makes the new one.
  case trim
  /// An eviction: by a memory warning or after a fault.
  case evict
  /// The first prediction after an eviction.
  case resume
  /// The model is loaded again.
  case reload
  /// The app left the foreground.
  case background
  /// A parity audit, beside the state set in use.
  case audit
  /// The conversation is over.
  case end
}

/// What the pipeline is doing.
public enum PipelinePhase: String, Sendable, CaseIterable {
  /// Between turns.
  case idle
  /// Ingesting a prompt.
  case prefill
  /// Generating.
  case decode
}

/// The input of one prediction.
public struct Chunk: Sendable, Equatable {
  /// Ids to consume, at least one.
  public let ids: [Token]
  /// Rows the state holds before it, which is the position of the first id.
  public let start: Int
  /// Why it is fed.
  public let purpose: PredictionPurpose

  /// Rows the state holds after it.
  public var end: Int { start + ids.count }

  /// - Parameters:
  ///   - ids: Ids to consume, at least one.
  ///   - start: Rows before it.
  ///   - purpose: Why it is fed.
  public init(ids: [Token], start: Int, purpose: PredictionPurpose) {
    self.ids = ids
    self.start = start
    self.purpose = purpose
  }
}
