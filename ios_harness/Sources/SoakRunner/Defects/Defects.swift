// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// Deliberate defects, for the self-test that proves the host's checks can fail.
///
/// One member per place where the app can be made to go wrong; each has the healthy value by default. A defect changes
/// what the app does and never what it claims: it is named in no record.
public struct Defects: Sendable {
  // What is planned.

  /// The token contract.
  var rules = ContextRules.contract
  /// Bands that choose budget and weights.
  var bands = MemoryBands.contract
  /// Which weights are loaded where the policy wants these.
  var weights: @Sendable (Quantization) -> Quantization = { $0 }
  /// The budget that is kept where the policy wants this one.
  var budget: @Sendable (TokenBudget) -> TokenBudget = { $0 }
  /// Ids that end a turn, of those that the model has.
  var endIDs: @Sendable (Set<Token>) -> Set<Token> = { $0 }

  // What runs.

  /// What runs in place of the engine.
  var engine: @Sendable (WitnessEngine) -> any InferenceEngine = { $0 }
  /// Share of the speed at a number of tokens.
  var speedShare: @Sendable (_ tokensTotal: Int) -> Double = { _ in 1 }
  /// How many times its time a load takes.
  var loadTimes = 1
  /// Where operations run.
  var placement: @Sendable (ModelLoad.Placement) -> ModelLoad.Placement = { $0 }
  /// Whether recorded memory warnings reach the pipeline.
  var hearsWarnings = true
  /// Predictions before the warning handler is registered.
  var handlerDelay = 0
  /// Memory that is never given back.
  var leak: Leak?
  /// Memory that no one asked for, so that the footprint without ballast is so many percent of the limit over the
  /// headroom.
  var hoardPercent: Int?
  /// What happens to the app.
  var mishap: Mishap?

  // What is shown and written.

  /// Whose notice is not shown.
  var hiddenNotice: ContextWindow.Upheaval?
  /// How often the end of a turn is said.
  var turnEnds = 1
  /// Whether incomplete characters are held back.
  var assemblesText = true
  /// Whether the rows that a trim kept are counted.
  var countsKeptRows = true
  /// Records that are not written.
  var loss = Journal.Loss.none
  /// The record whose bytes on the wire are not the journal's.
  var alteredSequence: Int?

  /// Memory that grows by a step at each token and is never given back.
  struct Leak: Sendable, Equatable {
    /// `tokens_total` of the first step.
    let fromToken: Int
    /// Phone bytes of a step, or host bytes times the scale.
    let step: Step
    /// Whether samples count it as ballast.
    let isDeclared: Bool

    enum Step: Equatable {
      case phoneBytes(Int)
      case hostBytes(Int)

      func hostBytes(memoryScale: Int) -> Int {
        switch self {
        case .phoneBytes(let bytes): bytes / memoryScale
        case .hostBytes(let bytes): bytes
        }
      }
    }
  }

  /// Something that happens to the app once, after a token of the launch.
  struct Mishap: Sendable, Equatable {
    enum Kind { case crash, hang, exit, earlyEnd }

    let kind: Kind
    let atToken: Int
  }

  /// A healthy app.
  public init() {}

  init(_ change: (inout Defects) -> Void) {
    self.init()
    change(&self)
  }
}
