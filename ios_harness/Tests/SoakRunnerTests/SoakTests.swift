// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import Testing

/// Whole launches of `harness-host`.
@Suite struct SoakTests {
  @Test func aHealthySoakIsProvenFromHelloToBye() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(warnings: #"[{"at_token":50},{"at_token":51}]"#))
    #expect(audit.problems == [])
    #expect(
      try audit.records.prefix(4).map { try $0.string("kind") } == [
        "hello", "breadcrumb", "load", "handler",
      ])
    let bye = try #require(audit.records.last)
    #expect(bye["reason"] == .string("completed") && bye["tokens_total"] == .integer(400))
    #expect(audit.count("trim") >= 3 && audit.count("evict") == 2)
    let schema = try RecordSchema()
    for line in audit.lines { #expect(try schema.problems(of: line) == []) }
  }

  @Test func twoSoaksOfOneSeedGiveTheSameTokens() throws {
    let runs = try (0..<2).map { _ in
      try JournalAudit.soak().records(of: "tokens").flatMap { try $0.int32s("ids") }
    }
    #expect(runs[0] == runs[1] && runs[0].count == 400)
  }

  @Test func ballastReachesItsShareOfTheLimitAndGoesWithTheEviction() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(
        warnings: #"[{"at_token":200}]"#,
        ballast: """
          [{"from_token":50,"to_token":150,"to_percent":80,"release":"evict","hold_tokens":900}]
          """))
    let samples = audit.records(of: "sample")
    let peak = try samples.map { try $0.integer("footprint") }.max() ?? 0
    #expect((78...83).contains(peak * 100 / 3_006_267_392))
    #expect(samples.last?["ballast"] == .integer(0))
  }

  @Test func aSoakThatCannotMoveEndsWithAFault() throws {
    let harness = try HarnessProcess().awaitListening()
    let client = try harness.connect()
    try client.hello()
    _ = try client.ask(SmallScenario(budget: 8).start(packages: [try harness.push()]))
    let audit = try JournalAudit(try client.rest())
    #expect(audit.records.last?["reason"] == .string("fault"))
    #expect(audit.records(of: "turn_end").allSatisfy { $0["reason"] == .string("refused") })
    #expect(harness.status() == 1)
  }

  @Test func weightsThatFindNoMemoryEndTheLaunchWithAFault() throws {
    let harness = try HarnessProcess(["FLEET_MEMORY_SCALE": "1"]).awaitListening()
    let client = try harness.connect()
    try client.hello()
    // More than the address space: refused on every system, whatever it overcommits.
    let package = try harness.push(weightsBytes: 1 << 50)
    _ = try client.ask(SmallScenario().start(packages: [package]))
    let audit = try JournalAudit(try client.rest())
    #expect(
      try audit.records.map { try $0.string("kind") } == ["hello", "breadcrumb", "fault", "bye"])
    #expect(audit.records.last?["reason"] == .string("fault"))
    #expect(harness.status() == 1)
    #expect(harness.errorText().contains("no memory"))
  }

  @Test func aSoakEndsWhenItsTimeHasPassed() throws {
    let audit = try JournalAudit.soak(SmallScenario(stopAfterTokens: nil, durationS: 0.3))
    let bye = try #require(audit.records.last)
    #expect(bye["reason"] == .string("completed"))
    #expect(try (0.3..<1.0).contains(bye.positive("inference_s")))
  }
}
