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
  /// The system gives this process no more surfaces until the model is loaded again.
  case surfaces
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
    case .surfaces: "surfaces"
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
    case .surfaces: "no surface left; the model must be loaded again"
    case .failed(let message): message
    }
  }
}

/// When a prediction began and ended, in nanoseconds of the launch.
public struct PredictionSpan: Sendable, Equatable {
  /// When it began.
  public let startNs: Int64
  /// When it ended.
  public let endNs: Int64

  /// - Parameters:
  ///   - startNs: When it began.
  ///   - endNs: When it ended.
  public init(startNs: Int64, endNs: Int64) {
    self.startNs = startNs
    self.endNs = endNs
  }
}

/// What a load of a model found.
public struct ModelLoad: Sendable, Equatable {
  /// Operations of one group that run on one device.
  public struct Placement: Sendable, Equatable {
    /// `attention`, `feed_forward`, ...
    public let group: String
    /// `neural_engine`, `gpu` or `cpu`.
    public let device: String
    /// How many.
    public let operationCount: Int

    /// - Parameters:
    ///   - group: `attention`, `feed_forward`, ...
    ///   - device: `neural_engine`, `gpu` or `cpu`.
    ///   - operationCount: How many.
    public init(group: String, device: String, operationCount: Int) {
      self.group = group
      self.device = device
      self.operationCount = operationCount
    }
  }

  /// Compute units that were asked for.
  public let computeUnits: String
  /// What the compute plan says; empty where there is none.
  public let plan: [Placement]
  /// Whether the system had to prepare the model first.
  public let isCold: Bool

  /// - Parameters:
  ///   - computeUnits: Compute units that were asked for.
  ///   - plan: What the compute plan says; empty where there is none.
  ///   - isCold: Whether the system had to prepare the model first.
  public init(computeUnits: String, plan: [Placement], isCold: Bool) {
    self.computeUnits = computeUnits
    self.plan = plan
    self.isCold = isCold
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
  /// The span of the last prediction, for engines that know it better than their caller; nil for others.
  var lastSpan: PredictionSpan? { get }
  /// Whether the engine asks to be loaded again, for the sake of what Core ML has leaked.
  var wantsReload: Bool { get }
  /// Surfaces that predictions may have left behind since the model was loaded: Core ML's are limited in number.
  var surfaceCount: Int { get }
  /// Makes the state set at its full length and touches it: the footprint steps once and then stays flat.
  func makeState(for purpose: StatePurpose) throws(EngineError)
  /// Gives the memory of the state set back before it returns.
  func releaseState(for purpose: StatePurpose)
  /// Consumes the ids of a chunk and returns when the prediction has ended.
  func predict(_ chunk: Chunk) throws(EngineError)
  /// Samples from the logits of the last prediction.
  func sample() throws(EngineError) -> Token
  /// Loads the model again; called without a state set (contract R9).
  func reload() throws(EngineError) -> ModelLoad
}

extension InferenceEngine {
  /// false: nothing leaks.
  public var wantsReload: Bool { false }

  /// 0: no surfaces.
  public var surfaceCount: Int { 0 }

  /// nil: the caller's clock is good enough.
  public var lastSpan: PredictionSpan? { nil }

  /// Refuses: not every engine can load its model again.
  public func reload() throws(EngineError) -> ModelLoad {
    throw .failed("this engine does not load its model again")
  }
}

/// An engine that can hold a second state set for the time of a parity audit (contract R9).
public protocol AuditingEngine: InferenceEngine {
  /// Makes the audit's state set; the one in use is not touched.
  func beginAudit() throws(EngineError)
  /// Feeds a chunk into the audit's state set.
  func predictAudit(_ chunk: Chunk) throws(EngineError)
  /// Compares the logits of the audit's last prediction with those of the last prediction in use.
  func compareAudit() throws(EngineError) -> Parity
  /// Releases the audit's state set, if there is one.
  func endAudit()
}
