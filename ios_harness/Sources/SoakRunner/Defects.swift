// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine
import StreamingLM

/// Deliberate defects, for the self-test that proves the host's checks can fail.
///
/// One member per place where the app can be made to go wrong; each has the healthy value by default. A defect changes
/// what the app does and never what it claims: it is named in no record.
public struct Defects: Sendable {
  /// When the context is trimmed and what stays.
  var trimRule = TrimRule.contract
  /// Bands that choose budget and weights.
  var bands = MemoryBands.contract
  /// Whether recorded memory warnings reach the pipeline.
  var hearsWarnings = true
  /// What runs in place of the engine.
  var engine: @Sendable (WitnessEngine) -> any InferenceEngine = { $0 }
  /// Memory that is never given back.
  var leak: Leak?

  /// Memory that grows by a step at each token and is never given back.
  struct Leak: Sendable, Equatable {
    /// `tokens_total` of the first step.
    let fromToken: Int
    let stepHostBytes: Int
  }

  /// A healthy app.
  public init() {}

  fileprivate init(_ change: (inout Defects) -> Void) {
    self.init()
    change(&self)
  }
}

/// The defects that an app can be launched with.
public enum DefectCatalog {
  private static let jetsamFromToken = 600
  private static let jetsamStepHostBytes = 2 * 1024 * 1024

  /// Reads `FLEET_DEFECT`.
  ///
  /// - Parameter text: `name` or `name:parameter`; an empty text is a healthy app.
  /// - Returns: The app's behaviour.
  /// - Throws: `UnknownDefectError` for an unknown name or a parameter that is no count.
  public static func defects(named text: String) throws(UnknownDefectError) -> Defects {
    if text.isEmpty { return Defects() }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let make = makers[String(parts[0])] else { throw UnknownDefectError(text: text) }
    if parts.count == 1 { return make(nil) }
    guard let parameter = Int(parts[1]), parameter > 0 else { throw UnknownDefectError(text: text) }
    return make(parameter)
  }

  private static let makers: [String: @Sendable (_ parameter: Int?) -> Defects] = [
    // The budget is ignored: the context grows to the model's capacity.
    "never-trim": { _ in
      Defects { $0.trimRule = TrimRule(isDue: { _, _, _ in false }, kept: TrimRule.contract.kept) }
    },
    // A trim is claimed, and the old rows stay.
    "trim-stale-state": { _ in Defects { $0.engine = { StaleTrimEngine($0) } } },
    // Memory warnings are recorded and not answered.
    "no-evict": { _ in Defects { $0.hearsWarnings = false } },
    // 8 GB phones are told by `>= 8 GiB`, which is true on none of them.
    "naive-8gib": { _ in
      Defects { $0.bands = MemoryBands(floors: [(8 * MemoryBands.gib, .gb8), (0, .gb6)]) }
    },
    // Memory is leaked until the kernel ends the app. The parameter is the first token.
    "jetsam": { parameter in
      Defects {
        $0.leak = Defects.Leak(
          fromToken: parameter ?? jetsamFromToken, stepHostBytes: jetsamStepHostBytes)
      }
    },
  ]
}

/// `FLEET_DEFECT` names no defect.
public struct UnknownDefectError: Error, Equatable, CustomStringConvertible {
  /// What it says.
  public let text: String

  /// One line for a person.
  public var description: String { "no defect '\(text)'" }
}
