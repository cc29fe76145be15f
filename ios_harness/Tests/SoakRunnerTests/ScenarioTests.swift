// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import Testing

/// What a scenario can have happen in a healthy launch, and how the app takes it.
@Suite struct ScenarioTests {
  @Test func auditsAgreeAndTouchNothing() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(extra: #","audits":[{"at_token":90},{"at_token":250}]"#))
    #expect(audit.problems == [])
    #expect(audit.values("max_abs", of: "parity") == [.double(0), .double(0)])
    #expect(audit.values("top5_overlap", of: "parity") == [.double(1), .double(1)])
    let states = audit.records(of: "state").filter { $0["purpose"] == .string("audit") }
    #expect(
      states.map { $0["action"] } == ["made", "released", "made", "released"].map(JSONValue.string))
    let fed = audit.records(of: "prefill").filter { $0["purpose"] == .string("audit") }
    let rows = try audit.integers("n", of: "parity").reduce(0, +)
    #expect(try fed.map { try $0.array("ids").count }.reduce(0, +) == rows)
  }

  @Test func anAuditThatMemoryDoesNotAllowIsNotDone() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(
        ballast: """
          [{"from_token":1,"to_token":50,"to_percent":90,"release":"evict","hold_tokens":900}]
          """, extra: #","audits":[{"at_token":90}]"#))
    #expect(audit.count("parity") == 0)
    #expect(audit.values("about", of: "breadcrumb").contains(.string("audit")))
  }

  @Test func aVisitToTheBackgroundReleasesTheStateAndPredictsNothing() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(extra: #","background":[{"at_token":100,"for_ms":150}]"#))
    #expect(audit.problems == [] && audit.count("evict") == 1)
    let moves = audit.records(of: "lifecycle")
    #expect(moves.map { $0["event"] } == [.string("background"), .string("foreground")])
    #expect(moves.allSatisfy { $0["origin"] == .string("scenario") })
    let times = try moves.map { try $0.integer("t_ns") }
    #expect(times[1] - times[0] >= 150_000_000)
    let between = try audit.records.filter {
      try (times[0]..<times[1]).contains($0.integer("t_ns"))
    }
    #expect(!between.contains { $0["kind"] == .string("prefill") })
    #expect(between.contains { $0["purpose"] == .string("background") })
  }

  @Test func aReloadLoadsTheModelAndFeedsTheContextAgain() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(extra: #","reloads":[{"at_token":100}]"#), package: #","load_ms":20"#)
    #expect(audit.problems == [] && audit.count("notice") == audit.count("trim"))
    let loads = audit.records(of: "load")
    #expect(loads.map { $0["reason"] } == [.string("launch"), .string("reload")])
    #expect(loads.map { $0["cold"] } == [.bool(true), .bool(false)])
    #expect(try loads.allSatisfy { try $0.positive("ms") >= 20 })
    #expect(audit.records(of: "prefill").contains { $0["purpose"] == .string("reload") })
  }

  @Test func warningsFindTheirPhase() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(
        warnings: """
          [{"at_token":40},{"at_token":100,"phase":"prefill"},{"at_token":200,"phase":"idle"}]
          """, extra: #","pause_ms":20"#))
    #expect(audit.problems == [])
    #expect(
      audit.values("phase", of: "evict") == ["decode", "prefill", "idle"].map(JSONValue.string))
  }

  @Test func logitsThatAreNotFiniteEndTheTurnAndTheNextOneWorks() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(extra: #","engine_faults":[{"kind":"non_finite","at_token":100}]"#))
    #expect(audit.problems == [])
    #expect(audit.values("code", of: "fault") == [.string("non_finite")])
    #expect(audit.values("reason", of: "evict") == [.string("fault")])
    #expect(audit.values("reason", of: "turn_end").count { $0 == .string("fault") } == 1)
    #expect(audit.records.last?["tokens_total"] == .integer(400))
  }

  @Test func exhaustedSurfacesHaveTheModelLoadedAgain() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(extra: #","engine_faults":[{"kind":"surfaces","at_token":100}]"#))
    #expect(audit.problems == [])
    #expect(audit.values("code", of: "fault") == [.string("surfaces")])
    #expect(audit.values("reason", of: "load") == [.string("launch"), .string("reload")])
    #expect(audit.records.last?["tokens_total"] == .integer(400))
  }

  @Test func aLoadThatFailsEndsTheLaunchWithAFault() throws {
    let harness = try HarnessProcess().awaitListening()
    let client = try harness.connect()
    try client.hello()
    let scenario = SmallScenario(extra: #","engine_faults":[{"kind":"load"}]"#)
    _ = try client.ask(scenario.start(packages: [try harness.push()]))
    let audit = try JournalAudit(try client.rest())
    #expect(audit.count("load") == 0 && audit.count("fault") == 1)
    #expect(audit.records.last?["reason"] == .string("fault"))
    #expect(harness.status() == 1)
  }

  @Test func heatSlowsTheEngineDown() throws {
    let harness = try HarnessProcess().awaitListening()
    let client = try harness.connect()
    try client.hello()
    harness.send(condition: #"{"n":1,"event":"thermal","state":"critical"}"#)
    var scenario = SmallScenario(stopAfterTokens: 100, decodeTokensPerS: 500)
    scenario.thermalPercent = #"{"critical":25}"#
    _ = try client.ask(scenario.start(packages: [try harness.push()]))
    let samples = try JournalAudit(try client.rest()).samples()
    // 8 ms a step, half of it where it makes up for lateness; a turn's first sample has the prompt's span.
    #expect(samples.suffix(50).count { $0.spanNs > 3_900_000 } > 40)
  }

  @Test(arguments: [
    #","sampling":{"mode":"sampled","temperature":0.8,"seed":1}"#,
    #","sampling":{"mode":"hot"}"#, #","audits":[{"at_token":0}]"#,
    #","background":[{"at_token":5}]"#, #","engine_faults":[{"kind":"quake"}]"#,
    #","pause_ms":-1"#,
  ])
  func aScenarioThatCannotBePlayedIsRefused(extra: String) throws {
    let harness = try HarnessProcess().awaitListening()
    let client = try harness.connect()
    try client.hello()
    let reply = try client.ask(
      SmallScenario(extra: extra).start(packages: [try harness.push()]))
    #expect(reply["error"] == .string("scenario"))
  }

  @Test func theViewShowsWholeCharactersAlone() throws {
    let audit = try JournalAudit.soak(package: #","text":"pieces""#)
    let texts = audit.values("text", of: "tokens").compactMap(\.asString)
    #expect(texts.joined().contains("😀") && !texts.joined().contains("\u{FFFD}"))
    let shown = texts.reduce(0) { $0 + $1.utf8.count }
    let held = try audit.integers("held_bytes", of: "turn_end").reduce(0, +)
    #expect(try audit.integers("text_bytes", of: "tokens").reduce(0, +) == shown + held)
    #expect(held > 0)
  }
}
