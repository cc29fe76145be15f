// SPDX-License-Identifier: Apache-2.0

import StreamingLM

/// What a scenario has happen at tokens of the launch. Owned by the pipeline's thread.
final class TokenSchedule {
  /// Something to be done right after a sample.
  enum Act: Equatable {
    case warn
    case audit
    case reload
    /// Leave the foreground for a time.
    case leave(forMs: Int)
  }

  private let scenario: Scenario
  /// Warnings whose token has come and whose phase has not.
  private var waiting: [PipelinePhase: Int] = [:]

  init(_ scenario: Scenario) { self.scenario = scenario }

  /// Names what is to be done at a token; each token is asked for once.
  ///
  /// - Parameter token: `tokens_total`.
  /// - Returns: In the order in which they are to be done.
  func acts(at token: Int) -> [Act] {
    var acts: [Act] = []
    if scenario.auditTokens.contains(token) { acts.append(.audit) }
    for warning in scenario.warnings where warning.atToken == token {
      if warning.phase == .decode {
        acts.append(.warn)
      } else {
        waiting[warning.phase, default: 0] += 1
      }
    }
    if scenario.reloadTokens.contains(token) { acts.append(.reload) }
    for visit in scenario.background where visit.atToken == token {
      acts.append(.leave(forMs: visit.forMs))
    }
    return acts
  }

  /// Takes the warnings that waited for a phase; returns how many.
  func takeWarnings(in phase: PipelinePhase) -> Int { waiting.removeValue(forKey: phase) ?? 0 }
}
