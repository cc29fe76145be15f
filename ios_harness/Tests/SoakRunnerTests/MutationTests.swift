// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM
import Testing

@testable import SoakRunner

/// One rule of the contract, changed.
struct Mutation: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let change: @Sendable (inout ContextRules) -> Void

  init(_ name: String, _ change: @escaping @Sendable (inout ContextRules) -> Void) {
    testDescription = name
    self.change = change
  }

  /// Each rule of `ContextRules` that token vectors can see, at least once.
  static let all = [
    Mutation("R1: a fed token is not accepted") { $0.acceptsFedTokens = false },
    Mutation("R2: pending does not open the next turn") { $0.carriesPending = false },
    Mutation("R2: the last sample does not stay pending") { $0.keepsPending = false },
    Mutation("R2: the limit comes before the end token") {
      $0.ending = { isEnd, isAtLimit in isAtLimit ? .turnLimit : isEnd ? .endToken : nil }
    },
    Mutation("R2: the end token is no end") { $0.ending = { $1 ? .turnLimit : nil } },
    Mutation("R2: the limit is no end") { rules in
      rules.ending = { isEnd, _ in isEnd ? .endToken : nil }
    },
    Mutation("R3: trims when the budget is just reached") {
      $0.isTrimDue = { rows, incoming, budget in rows + incoming >= budget }
    },
    Mutation("R3: trims one token late") {
      $0.isTrimDue = { rows, incoming, budget in rows + incoming > budget + 1 }
    },
    Mutation("R3: forgets what is incoming") {
      $0.isTrimDue = { rows, _, budget in rows > budget }
    },
    Mutation("R3: never trims") { $0.isTrimDue = { _, _, _ in false } },
    Mutation("R4: keeps no room for the pin") { $0.promptRoom = { budget, _, _ in budget } },
    Mutation("R4: keeps room for the pin in the first turn too") {
      $0.promptRoom = { budget, pin, _ in budget - pin }
    },
    Mutation("R4: feeds the tail of X alone") { $0.fed = { used, _, _ in Array(used.suffix(4)) } },
    Mutation("R5: half a budget is no bound") {
      $0.keptCount = { rows, _, room in max(0, min(rows, room)) }
    },
    Mutation("R5: what is incoming is no bound") {
      $0.keptCount = { rows, half, _ in min(rows, half) }
    },
    Mutation("R5: keeps one more than half") {
      $0.keptCount = { rows, half, room in max(0, min(rows, half + 1, room)) }
    },
    Mutation("R5: keeps one fewer than half") {
      $0.keptCount = { rows, half, room in max(0, min(rows, half - 1, room)) }
    },
    Mutation("R5: keeps the head") {
      $0.kept = { context, _, count in Array(context.prefix(count)) }
    },
    Mutation("R5: the tail is one id too old") {
      $0.kept = { context, pinned, count in
        Array(context.prefix(pinned) + context.dropLast().suffix(count - pinned))
      }
    },
    Mutation("R5: makes before it releases") { $0.makesBeforeRelease = true },
    Mutation("R6: drops the pin") {
      $0.kept = { context, _, count in Array(context.suffix(count)) }
    },
    Mutation("R6: counts no pin") { $0.pinnedCount = { _, _ in 0 } },
    Mutation("R7: leaves the sample in hand") { $0.samplesBeforeEviction = false },
    Mutation("R7: the turn ends before the eviction") { $0.evictsBeforeEnd = false },
    Mutation("R7: makes a state at once") { $0.makesLazily = false },
    Mutation("R8: pending outlives the context") { $0.losesPendingWithContext = false },
    Mutation("R8: restarts without the pin") { $0.restarted = { _, used in used } },
    Mutation("R8: restarts without the first id of X") {
      $0.restarted = { head, used in head + used.dropFirst() }
    },
    Mutation("R8: resumes with a longer tail") {
      $0.resumed = { accepted, start, pin, half in
        Array(accepted.prefix(pin) + accepted.dropFirst(max(start, pin)).suffix(half))
      }
    },
    Mutation("R8: resumes with earlier turns") {
      $0.resumed = { accepted, _, pin, half in
        Array(accepted.prefix(pin) + accepted.dropFirst(pin).suffix(half - pin))
      }
    },
    Mutation("R8: repeats the pin") {
      $0.resumed = { accepted, start, pin, half in
        Array(accepted.prefix(pin) + accepted.dropFirst(start).suffix(half - pin))
      }
    },
    Mutation("R8: a second dry eviction does not end the turn") { $0.mostDryEvictions = 2 },
    Mutation("R8: the first dry eviction ends the turn") { $0.mostDryEvictions = 0 },
    Mutation("R8: a sample does not end the drought") { $0.sampleEndsDrought = false },
    Mutation("R9: remakes the state before each decode") { $0.remakesBeforeDecode = true },
  ]
}

/// The vectors have power: whichever rule is changed, at least one of them fails.
@Suite struct MutationTests {
  /// Read once: without optimization it takes a second.
  private static let vectors = Result {
    let bytes = try Files.read(protocolFolder + "contract_vectors.json", limitBytes: 1 << 24)
    return try (JSONReader.read(bytes).asArray ?? []).map { try JSONFields($0) }
  }

  private static func isFailed(_ rules: ContextRules) throws -> Bool {
    try vectors.get().contains { vector in
      try vector["expect"] != .array(ContractReplay.turns(of: vector, rules: rules))
    }
  }

  @Test func theContractItselfFailsNone() throws {
    #expect(try Self.vectors.get().count == 82)
    #expect(try !Self.isFailed(.contract))
  }

  @Test(arguments: Mutation.all)
  func aChangedRuleFailsAVector(mutation: Mutation) throws {
    #expect(try Self.isFailed(ContextRules(mutation.change)))
  }
}
