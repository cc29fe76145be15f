// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// What a context window is built for.
public struct ContextPlan: Sendable {
  /// B, the largest number of context tokens at any prediction.
  public let budget: Int
  /// p, length of the pinned prefix.
  public let pin: Int
  /// Ids that end a turn.
  public let endIDs: Set<Token>
  /// Widest prefill chunk.
  public let chunk: Int
  /// What happens to a prompt that does not fit.
  public let longPrompt: LongPromptPolicy
  /// The token contract.
  public let rules: ContextRules

  /// h, what a trim keeps at most.
  public var half: Int { budget / 2 }

  /// - Parameters:
  ///   - budget: At least 2.
  ///   - pin: At most a quarter of the budget (contract R6).
  ///   - endIDs: Ids that end a turn.
  ///   - chunk: At least 1.
  ///   - longPrompt: What happens to a prompt that does not fit.
  ///   - rules: The token contract; any other exists to be caught.
  /// - Throws: `ContextPlanError` when the numbers do not go together.
  public init(
    budget: Int, pin: Int, endIDs: Set<Token>, chunk: Int,
    longPrompt: LongPromptPolicy = .refuse, rules: ContextRules = .contract
  ) throws(ContextPlanError) {
    guard budget >= 2 else { throw .budgetTooSmall(budget) }
    guard (0...budget / 4).contains(pin) else { throw .pinTooLong(pin: pin, budget: budget) }
    guard chunk >= 1 else { throw .chunkTooSmall(chunk) }
    self.budget = budget
    self.pin = pin
    self.endIDs = endIDs
    self.chunk = chunk
    self.longPrompt = longPrompt
    self.rules = rules
  }
}

/// What happens to a prompt over the budget (contract R4).
public enum LongPromptPolicy: String, Sendable, CaseIterable {
  /// A typed refusal; nothing changes.
  case refuse
  /// The pin and the last tokens that fit are used.
  case truncate
}

/// Why a context plan is refused before anything runs.
public enum ContextPlanError: Error, Equatable, CustomStringConvertible {
  /// A context needs a token and the one that is decoded from it.
  case budgetTooSmall(Int)
  /// The pin is longer than a quarter of the budget.
  case pinTooLong(pin: Int, budget: Int)
  /// A chunk holds at least one token.
  case chunkTooSmall(Int)

  /// One line for a person.
  public var description: String {
    switch self {
    case .budgetTooSmall(let budget): "a budget of \(budget) tokens is under 2"
    case .pinTooLong(let pin, let budget): "pin \(pin) is over a quarter of the budget \(budget)"
    case .chunkTooSmall(let chunk): "a chunk of \(chunk) tokens is under 1"
    }
  }
}

/// A trim that is about to happen.
public struct Trim: Sendable, Equatable {
  /// Why.
  public enum Reason: String, Sendable {
    /// The next tokens would pass the budget.
    case budget
    /// Available memory fell under the headroom (contract R13).
    case lowMemory = "low_memory"
  }

  /// Rows before it.
  public let before: Int
  /// Ids that stay.
  public let kept: [Token]
  /// How many of them are the pin.
  public let pinned: Int
  /// Tokens that are to enter after it.
  public let incoming: Int
  /// Why.
  public let reason: Reason
  /// What the pipeline was doing.
  public let phase: PipelinePhase
}

/// An eviction that is about to happen.
public struct Eviction: Sendable, Equatable {
  /// Why.
  public enum Reason: String, Sendable {
    /// A memory warning (contract R7).
    case memoryWarning = "memory_warning"
    /// The app left the foreground (contract R12).
    case background
    /// A prediction failed (contract R9).
    case fault
  }

  /// Rows before it; all of them go.
  public let before: Int
  /// Why.
  public let reason: Reason
  /// What the pipeline was doing.
  public let phase: PipelinePhase
}

/// What a turn begins with.
public struct TurnOpening: Sendable, Equatable {
  /// The prompt as it was asked.
  public let prompt: [Token]
  /// `X` of the contract: pending ids and prompt, as they will be fed; empty when refused.
  public let used: [Token]
  /// How many of `used` were pending.
  public let carried: Int
  /// Length of `X` before a refusal or a truncation.
  public let askedCount: Int
}
