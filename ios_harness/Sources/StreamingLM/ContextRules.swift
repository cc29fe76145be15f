// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// The rules of the token contract that a `ContextWindow` asks, one member each. The defaults are the contract; any
/// other value exists to be caught, by a test that changes one rule at a time or by a self-test of the host.
public struct ContextRules: Sendable {
  /// R3: whether `rows` and `incoming` more tokens call for a trim under a `budget`.
  public var isTrimDue: @Sendable (_ rows: Int, _ incoming: Int, _ budget: Int) -> Bool = {
    rows, incoming, budget in rows + incoming > budget
  }
  /// R5: how many ids a trim keeps, of a `half` budget and the `room` beside what is incoming.
  public var keptCount: @Sendable (_ rows: Int, _ half: Int, _ room: Int) -> Int = {
    rows, half, room in max(0, min(rows, half, room))
  }
  /// R5 and R6: how many of the kept ids are the pin.
  public var pinnedCount: @Sendable (_ pin: Int, _ kept: Int) -> Int = { pin, kept in
    min(pin, kept)
  }
  /// R5 and R6: the ids that stay: `count` of the context, of which the first `pinned` are the pin.
  public var kept: @Sendable (_ context: [Token], _ pinned: Int, _ count: Int) -> [Token] = {
    context, pinned, count in
    count == context.count
      ? context : Array(context.prefix(pinned) + context.suffix(count - pinned))
  }
  /// R5: whether a trim makes the new state set before it releases the old one.
  public var makesBeforeRelease = false
  /// R4: the longest X that is not refused.
  public var promptRoom: @Sendable (_ budget: Int, _ pin: Int, _ isFirst: Bool) -> Int = {
    budget, pin, isFirst in budget - (isFirst ? 0 : pin)
  }
  /// R4: what of an accepted X is fed; `rows` are in the state set.
  public var fed: @Sendable (_ used: [Token], _ rows: Int, _ budget: Int) -> [Token] = {
    used, _, _ in used
  }
  /// R2: whether the pending token opens the next turn.
  public var carriesPending = true
  /// R2: whether the last sampled token stays pending.
  public var keepsPending = true
  /// R2: whether a sample ends the turn.
  public var ending: @Sendable (_ isEndToken: Bool, _ isAtLimit: Bool) -> StopReason? = {
    isEndToken, isAtLimit in isEndToken ? .endToken : isAtLimit ? .turnLimit : nil
  }
  /// R1: whether a token that is fed counts as accepted.
  public var acceptsFedTokens = true
  /// R7: whether logits in hand are sampled before an eviction.
  public var samplesBeforeEviction = true
  /// R7: whether an eviction comes before R2's end.
  public var evictsBeforeEnd = true
  /// R7: whether nothing is made between an eviction and the next prediction.
  public var makesLazily = true
  /// R8: whether the pending token is lost with the context between turns.
  public var losesPendingWithContext = true
  /// R8: what an ingestion that finds no rows feeds: L's pin from before the turn, and X.
  public var restarted: @Sendable (_ head: [Token], _ used: [Token]) -> [Token] = { head, used in
    head + used
  }
  /// R8: what is fed after an eviction while decoding; `start` is the length of L before the turn.
  public var resumed:
    @Sendable (_ accepted: [Token], _ start: Int, _ pin: Int, _ half: Int) -> [Token] = {
      accepted, start, pin, half in
      let head = accepted.prefix(pin)
      let body = accepted.dropFirst(max(start, pin))
      return Array(head + body.suffix(half - head.count))
    }
  /// R8: evictions without a sample between them after which the turn goes on.
  public var mostDryEvictions = 1
  /// R8: whether a sample begins that count anew.
  public var sampleEndsDrought = true
  /// R9: whether the state set is remade before each decode step.
  public var remakesBeforeDecode = false
  /// R12: whether leaving the foreground releases the state set.
  public var releasesInBackground = true

  /// The contract.
  public init() {}

  /// The contract with one change.
  public init(_ change: (inout ContextRules) -> Void) {
    self.init()
    change(&self)
  }

  /// The contract.
  public static let contract = ContextRules()
}
