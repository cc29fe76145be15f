// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import Testing

/// Whole launches of `harness-host`.
@Suite struct SoakTests {
  /// Runs a soak to its end and returns its records as the client received them.
  private func soak(
    _ scenario: SmallScenario = SmallScenario(), defect: String = ""
  ) throws -> JournalAudit {
    let harness = try HarnessProcess(["FLEET_DEFECT": defect]).awaitListening()
    let client = try harness.connect()
    try client.hello()
    let reply = try client.ask(scenario.start(packages: [try harness.push()]))
    try #require(reply["ok"] == .bool(true), "\(reply)")
    let lines = try client.rest()
    #expect(harness.status() == 0)
    #expect(lines.flatMap(\.self) == harness.journal)
    return try JournalAudit(lines)
  }

  @Test func aHealthySoakIsProvenFromHelloToBye() throws {
    let audit = try soak(SmallScenario(warnings: #"[{"at_token":50},{"at_token":51}]"#))
    #expect(audit.problems == [])
    #expect(
      try audit.records.prefix(4).map { try $0.string("kind") } == [
        "hello", "breadcrumb", "load", "handler",
      ])
    let bye = try #require(audit.records.last)
    #expect(bye["reason"] == .string("completed") && bye["tokens_total"] == .integer(400))
    #expect(audit.count("trim") >= 3 && audit.count("evict") == 2)
    let schema = try RecordSchema()
    for record in audit.records {
      let kind = try record.string("kind")
      #expect(schema.kinds[kind]?.required.allSatisfy { record.has($0) } == true)
    }
  }

  @Test func twoSoaksOfOneSeedGiveTheSameTokens() throws {
    let runs = try (0..<2).map { _ in
      try soak().records(of: "tokens").flatMap { try $0.int32s("ids") }
    }
    #expect(runs[0] == runs[1] && runs[0].count == 400)
  }

  @Test func ballastReachesItsShareOfTheLimitAndGoesWithTheEviction() throws {
    let audit = try soak(
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

  @Test func neverTrimPassesTheBudget() throws {
    let audit = try soak(defect: "never-trim")
    #expect(audit.count("trim") == 0)
    #expect(audit.problems.contains { $0.hasSuffix("rows") })
    #expect(!audit.problems.contains("a token is not proven"))
    // At the model's capacity the engine refuses, the turn ends, and the run goes on with a fresh state.
    #expect(audit.records(of: "fault").contains { $0["code"] == .string("capacity") })
    #expect(audit.records(of: "turn_end").contains { $0["reason"] == .string("fault") })
    #expect(audit.records(of: "evict").contains { $0["reason"] == .string("fault") })
  }

  @Test func aStaleStateIsBetrayedByItsTokensAlone() throws {
    let audit = try soak(defect: "trim-stale-state")
    #expect(audit.count("trim") > 0)
    #expect(Set(audit.problems) == ["a token is not proven"])
  }

  @Test func noEvictHearsWarningsAndKeepsTheState() throws {
    let audit = try soak(
      SmallScenario(warnings: #"[{"at_token":50}]"#), defect: "no-evict")
    #expect(audit.count("memory_warning") == 1 && audit.count("evict") == 0)
  }

  @Test func jetsamGrowsAndSamplesItselfOnTheWay() throws {
    let audit = try soak(SmallScenario(stopAfterTokens: 60), defect: "jetsam:30")
    let held = try audit.records(of: "sample").map { try $0.integer("ballast") }
    #expect(held.max() ?? 0 >= 29 * 2 * 1024 * 1024 * 32)
    #expect(held.count >= 25)
  }

  @Test func naive8GiBTakesThe8GBPhoneForA6GBOne() throws {
    let harness = try HarnessProcess([
      "FLEET_DEFECT": "naive-8gib", "FLEET_PHYSICAL_MEMORY_BYTES": "8021032960",
    ]).awaitListening()
    let client = try harness.connect()
    try client.hello()
    let packages = [try harness.push("int4"), try harness.push("int8")]
    _ = try client.ask(SmallScenario(stopAfterTokens: 5).start(packages: packages))
    let hello = try JournalAudit(try client.rest()).records[0]
    #expect(hello["quantization"] == .string("int4") && hello["budget"] == .integer(64))
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
    let audit = try soak(SmallScenario(stopAfterTokens: nil, durationS: 0.3))
    let bye = try #require(audit.records.last)
    #expect(bye["reason"] == .string("completed"))
    #expect(try (0.3..<1.0).contains(bye.positive("inference_s")))
  }
}
