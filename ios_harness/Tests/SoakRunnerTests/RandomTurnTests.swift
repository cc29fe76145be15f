// SPDX-License-Identifier: Apache-2.0

import Foundation
import HarnessCore
import StreamingLM
import Testing

@testable import SoakRunner

/// Random conversations, against the contract read as prose and against a cache made of slots.
@Suite struct RandomTurnTests {
  /// 2,000 conversations, or 100,000 with `FLEET_DEEP=1`.
  private static let blocks: Range<Int> =
    ProcessInfo.processInfo.environment["FLEET_DEEP"] == "1" ? 0..<1000 : 0..<20
  private static let conversationsPerBlock = 100

  @Test(arguments: blocks)
  func theWindowDoesWhatTheContractSays(block: Int) throws {
    for index in 0..<Self.conversationsPerBlock {
      let seed = UInt64(block * Self.conversationsPerBlock + index)
      let vector = RandomVector(seed: seed)
      let traces = try ContractReplay.turns(of: JSONFields(vector.asJSON))
      var reference = ReferenceConversation(
        budget: vector.budget, pin: vector.pin, endIDs: [0], chunk: vector.chunk)
      let expected = vector.turns.map { JSONValue.array(reference.play($0)) }
      try #require(traces == expected, "seed \(seed)")
      var slots = SlotModel(budget: vector.budget, pin: vector.pin, chunk: vector.chunk)
      for operation in traces.flatMap({ $0.asArray ?? [] }) { try slots.follow(operation) }
      try #require(slots.problems == [], "seed \(seed)")
    }
  }

  @Test func theSlotModelSeesAWrongTail() throws {
    var found = 0
    for seed in UInt64(0)..<50 {
      let vector = RandomVector(seed: seed)
      let rules = ContextRules { rules in
        rules.kept = { context, _, count in Array(context.prefix(count)) }
      }
      let traces = try ContractReplay.turns(of: JSONFields(vector.asJSON), rules: rules)
      var slots = SlotModel(budget: vector.budget, pin: vector.pin, chunk: vector.chunk)
      for operation in traces.flatMap({ $0.asArray ?? [] }) { try slots.follow(operation) }
      if !slots.problems.isEmpty { found += 1 }
    }
    #expect(found > 10)
  }
}

/// A conversation drawn from a seed: small numbers, so that edges meet often.
struct RandomVector {
  let budget: Int
  let pin: Int
  let chunk: Int
  let turns: [ReferenceConversation.Script]

  init(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    func draw(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }
    budget = draw(2...24)
    pin = draw(0...budget / 4)
    chunk = draw(1...8)
    var turns: [ReferenceConversation.Script] = []
    for _ in 0..<draw(1...6) {
      turns.append(
        ReferenceConversation.Script(
          prompt: (0..<draw(1...budget + 2)).map { _ in Token(draw(1...99)) },
          sampled: (0..<draw(0...30)).map { _ in Token(draw(0...12) == 0 ? 0 : draw(100...199)) },
          limit: draw(0...2) == 0 ? draw(1...20) : nil,
          warnings: Set((0..<draw(0...3)).map { _ in draw(1...20) })))
    }
    self.turns = turns
  }

  var asJSON: JSONValue {
    func number(_ value: Int) -> JSONValue { .integer(Int64(value)) }
    let turns = turns.map { turn in
      JSONValue.object([
        "prompt": .array(turn.prompt.map { number(Int($0)) }),
        "sampled": .array(turn.sampled.map { number(Int($0)) }),
        "limit": turn.limit.map(number) ?? .null, "warnings": .array(turn.warnings.map(number)),
      ])
    }
    return .object([
      "budget": number(budget), "pin": number(pin), "chunk": number(chunk),
      "end_ids": .array([number(0)]), "turns": .array(turns),
    ])
  }
}
