// SPDX-License-Identifier: Apache-2.0

/// Why an engine refused or failed. The state set is then undefined and must be released.
public enum EngineError: Error, Equatable, CustomStringConvertible {
  /// The positions asked for do not fit the state set.
  case capacity(needed: Int, available: Int)
  /// A prediction was asked for while another one ran on the same state set.
  case overlap
  /// No state set is made, or one is made already.
  case state(expected: String)
  /// The logits hold values that are not finite.
  case nonFinite
  /// The system gave no memory.
  case memory(bytes: Int)
  /// The engine's own failure.
  case failed(String)

  /// A word for records.
  public var code: String {
    switch self {
    case .capacity: "capacity"
    case .overlap: "overlap"
    case .state: "state"
    case .nonFinite: "non_finite"
    case .memory: "memory"
    case .failed: "failed"
    }
  }

  /// One line for a person.
  public var description: String {
    switch self {
    case .capacity(let needed, let available): "\(needed) rows needed, \(available) available"
    case .overlap: "a prediction runs on this state already"
    case .state(let expected): "expected \(expected)"
    case .nonFinite: "the logits are not finite"
    case .memory(let bytes): "no memory for \(bytes) bytes"
    case .failed(let message): message
    }
  }
}

/// A model with one state set (its key/value cache), advanced in place.
///
/// One owner, one thread: Core ML leaves overlapping predictions on the same `MLState` undefined, so engines are
/// not `Sendable` and the compiler refuses a second task.
///
/// Source: developer.apple.com/documentation/coreml/mlstate
public protocol InferenceEngine: AnyObject {
  /// Most rows that a state set can hold.
  var capacity: Int { get }
  /// Bytes of one state set, as a record states them.
  var stateBytes: Int { get }
  /// Makes the state set at its full length and touches it: the footprint steps once and then stays flat.
  func makeState(for purpose: StatePurpose) throws(EngineError)
  /// Gives the memory of the state set back before it returns.
  func releaseState(for purpose: StatePurpose)
  /// Consumes the ids of a chunk and returns when the prediction has ended.
  func predict(_ chunk: Chunk) throws(EngineError)
  /// Samples from the logits of the last prediction.
  func sample() throws(EngineError) -> Token
}
