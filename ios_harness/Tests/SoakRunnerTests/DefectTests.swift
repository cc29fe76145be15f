// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM
import Testing

@testable import SoakRunner

/// Every defect of the catalog really happens: in the records, or in the engine as its tokens and times show it.
@Suite struct DefectTests {
  @Test func theCatalogHoldsAllDefects() {
    #expect(
      DefectCatalog.entries.keys.sorted() == [
        "ane-fallback", "constant-output", "crash", "double-end", "double-feed-last",
        "drop-first-token", "evict-during-prediction", "evict-keeps-memory", "exit-silently",
        "hang", "ignore-end-token", "int8-on-6gb", "jetsam", "journal-differs",
        "keeps-kv-in-background", "kv-grows", "late-handler", "leak", "make-before-release",
        "naive-8gib", "never-trim", "no-evict", "no-evict-notice", "no-trim-notice",
        "over-headroom", "overlap", "parity-drift", "refeed-context", "resume-wrong-tail",
        "silent-truncation", "slow-decay", "slow-load", "slow-steady", "split-utf8",
        "state-per-token", "stops-early", "telemetry-gap", "telemetry-stops",
        "trim-drops-bos", "trim-early", "trim-forgets-count", "trim-keeps-head", "trim-late",
        "trim-stale-state", "trim-tail-off-by-one", "wrong-budget",
      ])
    #expect(DefectCatalog.entries.count == 46)
  }

  // Trims.

  @Test func neverTrimPassesTheBudget() throws {
    let audit = try JournalAudit.soak(defect: "never-trim")
    #expect(audit.count("trim") == 0)
    #expect(audit.problems.contains { $0.hasSuffix("rows") })
    #expect(!audit.problems.contains("a token is not proven"))
    // At the model's capacity the engine refuses, the turn ends, and the run goes on with a fresh state.
    #expect(audit.records(of: "fault").contains { $0["code"] == .string("capacity") })
    #expect(audit.records(of: "turn_end").contains { $0["reason"] == .string("fault") })
    #expect(audit.records(of: "evict").contains { $0["reason"] == .string("fault") })
  }

  @Test func trimLatePassesTheBudgetByItsParameter() throws {
    let rows = try JournalAudit.soak(defect: "trim-late:7").samples().map(\.rows)
    #expect(rows.max() == 71)
  }

  @Test func trimEarlyNeverFillsTheBudget() throws {
    let audit = try JournalAudit.soak(defect: "trim-early:7")
    #expect(try audit.samples().map(\.rows).max() == 57)
    #expect(audit.problems == [])
  }

  @Test func trimKeepsHeadKeepsTheOldest() throws {
    let trims = try JournalAudit.soak(defect: "trim-keeps-head").trims
    #expect(trims.count > 3 && trims.allSatisfy { $0.before.starts(with: $0.fed) })
  }

  @Test(arguments: [1, 2])
  func trimTailOffByOneGoesEitherWay(way: Int) throws {
    let trims = try JournalAudit.soak(defect: "trim-tail-off-by-one:\(way)").trims
    #expect(trims.count > 3)
    for trim in trims {
      let tail = Array(trim.fed.dropFirst())
      #expect(trim.fed.first == 1)
      #expect(Array((way == 1 ? trim.before.dropLast() : trim.before).suffix(tail.count)) == tail)
      #expect(trim.fed.count == (way == 1 ? 32 : 31))
    }
  }

  @Test func trimDropsBOSKeepsTheTailAlone() throws {
    let trims = try JournalAudit.soak(defect: "trim-drops-bos").trims
    #expect(trims.count > 3)
    #expect(trims.allSatisfy { $0.fed == Array($0.before.suffix(32)) && $0.fed.first != 1 })
  }

  @Test func trimForgetsCountLosesWhatWasKept() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(stopAfterTokens: 60), defect: "trim-forgets-count")
    #expect(audit.count("trim") > 0)
    #expect(audit.problems.contains { $0.hasPrefix("n is") })
    #expect(!audit.problems.contains("a token is not proven"))
  }

  @Test func trimForStaleStateIsBetrayedByItsTokensAlone() throws {
    let audit = try JournalAudit.soak(defect: "trim-stale-state")
    #expect(audit.count("trim") > 0)
    #expect(Set(audit.problems) == ["a token is not proven"])
  }

  @Test(arguments: ["double-feed-last", "drop-first-token"])
  func aTokenThatIsFedTwiceOrNotShowsInTheTokensAlone(defect: String) throws {
    #expect(Set(try JournalAudit.soak(defect: defect).problems) == ["a token is not proven"])
  }

  @Test func silentTruncationFeedsLessThanItSays() throws {
    let audit = try JournalAudit.soak(defect: "silent-truncation")
    #expect(!audit.records(of: "trim").contains { $0["phase"] == .string("prefill") })
    var cut = 0
    for start in audit.records(of: "turn_start") {
      let fed = audit.records(of: "prefill").filter {
        $0["turn"] == start["turn"] && $0["conversation"] == start["conversation"]
          && $0["purpose"] == .string("turn")
      }
      let used = try start.int32s("used_ids")
      let ids = try fed.flatMap { try $0.int32s("ids") }
      #expect(ids == Array(used.suffix(ids.count)))
      if ids.count < used.count { cut += 1 }
    }
    #expect(cut > 0)
  }

  // Evictions.

  @Test func resumeWrongTailFeedsFewerIDs() throws {
    let fed = try ["", "resume-wrong-tail:7"].map { defect in
      let audit = try JournalAudit.soak(
        SmallScenario(stopAfterTokens: 40, endEvery: 0, warnings: #"[{"at_token":28}]"#),
        defect: defect)
      return try audit.records(of: "prefill").filter { $0["purpose"] == .string("resume") }
        .map { try $0.array("ids").count }.reduce(0, +)
    }
    #expect(fed == [32, 25])
  }

  @Test func noEvictHearsWarningsAndKeepsTheState() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(warnings: #"[{"at_token":50}]"#), defect: "no-evict")
    #expect(audit.count("memory_warning") == 1 && audit.count("evict") == 0)
  }

  @Test(arguments: ["no-trim-notice", "no-evict-notice"])
  func aNoticeIsMissingForOneKindAlone(defect: String) throws {
    let audit = try JournalAudit.soak(
      SmallScenario(warnings: #"[{"at_token":50}]"#), defect: defect)
    let named = try audit.integers("for_seq", of: "notice")
    let shown = defect == "no-trim-notice" ? "evict" : "trim"
    #expect(try named == audit.integers("seq", of: shown) && !named.isEmpty)
    #expect(audit.count("trim") > 0 && audit.count("evict") > 0)
  }

  @Test func evictKeepsMemoryUntilTheNextStateIsMade() throws {
    let freed = try ["", "evict-keeps-memory"].map { defect in
      let audit = try JournalAudit.soak(
        SmallScenario(warnings: #"[{"at_token":50}]"#), defect: defect)
      let before = try #require(try audit.integers("footprint", of: "evict").first)
      let released = try #require(
        audit.records(of: "state").first { $0["purpose"] == .string("evict") })
      return before - (try released.integer("footprint"))
    }
    #expect(freed[0] > 3 << 20 && freed[1] < 1 << 20)
  }

  @Test func evictDuringPredictionReleasesBeforeItsEnd() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(decodeTokensPerS: 20, warnings: #"[{"at_token":8}]"#).stopped(after: 12),
      defect: "evict-during-prediction")
    let released = try #require(
      audit.records(of: "state").first { $0["purpose"] == .string("evict") })
    let before = try audit.records(of: "tokens").filter {
      try $0.integer("seq") < released.integer("seq")
    }
    let lastEndNs = try #require(try before.last?.array("end_ns").last?.asInteger)
    #expect(try released.integer("t_ns") < lastEndNs)
  }

  @Test func lateHandlerComesAfterPredictions() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(stopAfterTokens: 30, warnings: #"[{"at_token":1}]"#),
      defect: "late-handler:7")
    let kinds = try audit.records.map { try $0.string("kind") }
    let handler = try #require(kinds.firstIndex(of: "handler"))
    #expect(kinds[..<handler].contains("prefill"))
    #expect(audit.count("memory_warning") == 0)
  }

  // States.

  @Test func overlapStartsBeforeTheLastPredictionHasEnded() throws {
    func overlaps(_ defect: String) throws -> Int {
      let audit = try JournalAudit.soak(
        SmallScenario(decodeTokensPerS: 500).shortened, defect: defect)
      let spans = try audit.records(of: "tokens").flatMap { record in
        zip(try record.array("start_ns"), try record.array("end_ns"))
          .map { ($0.asInteger ?? 0, $1.asInteger ?? 0) }
      }
      return zip(spans, spans.dropFirst()).count { $1.0 < $0.1 }
    }
    #expect(try overlaps("overlap") > 20)
    #expect(try overlaps("") == 0)
  }

  @Test func statePerTokenRemakesWithoutLoading() throws {
    let audit = try JournalAudit.soak(SmallScenario().shortened, defect: "state-per-token")
    let made = audit.records(of: "state").count { $0["action"] == .string("made") }
    #expect(made > 40 && audit.count("load") == 1 && audit.problems == [])
  }

  @Test func makeBeforeReleaseHasTwoStatesAtOnce() throws {
    let audit = try JournalAudit.soak(defect: "make-before-release")
    let states = audit.records(of: "state").filter { $0["purpose"] == .string("trim") }
    #expect(states.prefix(2).map { $0["action"] } == [.string("made"), .string("released")])
    #expect(try states[0].integer("id") == states[1].integer("id") + 1)
    #expect(!audit.problems.contains("a token is not proven"))
  }

  @Test func keepsKVInBackgroundReleasesNothingAndPredictsNothing() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(extra: #","background":[{"at_token":100,"for_ms":100}]"#),
      defect: "keeps-kv-in-background")
    #expect(audit.count("lifecycle") == 2 && audit.count("evict") == 0 && audit.problems == [])
    let times = try audit.integers("t_ns", of: "lifecycle")
    for kind in ["prefill", "tokens"] {
      let starts = try audit.integers("t_ns", of: kind)
      #expect(!starts.contains { (times[0] + 5_000_000..<times[1]).contains($0) })
    }
  }

  // Model and memory.

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

  @Test func int8On6GBLoadsTheWrongWeightsAndKeepsTheBudget() throws {
    let hello = try JournalAudit.soak(SmallScenario().shortened, defect: "int8-on-6gb").records[0]
    #expect(hello["quantization"] == .string("int8") && hello["budget"] == .integer(64))
  }

  @Test func wrongBudgetIsAShareOfTheRightOne() throws {
    let audit = try JournalAudit.soak(defect: "wrong-budget:75")
    #expect(audit.records[0]["budget"] == .integer(48) && audit.problems == [])
    #expect(try audit.samples().map(\.rows).max() == 48)
  }

  @Test func overHeadroomFillsTheHeadroomWithoutBallast() throws {
    let audit = try JournalAudit.soak(SmallScenario().shortened, defect: "over-headroom:5")
    let percents = try audit.integers("footprint", of: "sample").map { $0 / (3_006_267_392 / 100) }
    #expect(percents.allSatisfy { (83...87).contains($0) } && !percents.isEmpty)
    #expect(try audit.integers("ballast", of: "sample").allSatisfy { $0 == 0 })
  }

  @Test func kvGrowsWithItsRows() throws {
    let growth = try ["", "kv-grows:800"].map { defect in
      let audit = try JournalAudit.soak(SmallScenario(stopAfterTokens: 100), defect: defect)
      let made = try #require(audit.records(of: "state").first)
      let trim = try #require(audit.records(of: "trim").first)
      return try trim.integer("footprint") - made.integer("footprint")
    }
    #expect(growth[1] - growth[0] > 8 << 20)
  }

  @Test func leakGrowsUndeclared() throws {
    let audit = try JournalAudit.soak(defect: "leak:512")
    let loaded = try #require(try audit.integers("footprint", of: "load").first)
    let last = try #require(audit.records(of: "sample").last)
    #expect(try last.integer("footprint") - loaded > 180 << 20)
    #expect(last["ballast"] == .integer(0))
  }

  @Test func jetsamGrowsAndSamplesItselfOnTheWay() throws {
    let audit = try JournalAudit.soak(SmallScenario(stopAfterTokens: 60), defect: "jetsam:30")
    let held = try audit.integers("ballast", of: "sample")
    #expect(held.max() ?? 0 >= 29 * 2 * 1024 * 1024 * 32)
    #expect(held.count >= 25)
  }

  @Test func aneFallbackRunsAllOnTheCPU() throws {
    let plan = #"[{"group":"feed_forward","device":"neural_engine","ops":48}]"#
    let devices = try ["", "ane-fallback"].map { defect in
      let audit = try JournalAudit.soak(
        SmallScenario().shortened, defect: defect, package: #","compute_plan":\#(plan)"#)
      return try audit.records(of: "load")[0].objects("plan")[0]["device"]
    }
    #expect(devices == [.string("neural_engine"), .string("cpu")])
  }

  @Test func slowLoadTakesTimesItsTime() throws {
    let audit = try JournalAudit.soak(
      SmallScenario().shortened, defect: "slow-load:3", package: #","load_ms":120"#)
    #expect(try audit.records(of: "load")[0].positive("ms") >= 360)
  }

  // Speed.

  private func meanNs(_ samples: some Collection<(token: Token, rows: Int, spanNs: Int)>) -> Int {
    samples.map(\.spanNs).reduce(0, +) / max(1, samples.count)
  }

  @Test func slowSteadyTakesLongerPerToken() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(decodeTokensPerS: 500).shortened, defect: "slow-steady:60")
    // 2 ms a step become 5.
    #expect(meanNs(try audit.samples().dropFirst(4)) > 4_000_000)
  }

  @Test func slowDecayGetsSlower() throws {
    let samples = try JournalAudit.soak(
      SmallScenario(decodeTokensPerS: 1000, endEvery: 0).shortened, defect: "slow-decay:12000"
    ).samples()
    #expect(meanNs(samples.suffix(5)) > 2 * meanNs(samples[2..<7]))
  }

  @Test func refeedContextCostsMoreTheMoreRowsThereAre() throws {
    let samples = try JournalAudit.soak(
      SmallScenario(prefillTokensPerS: 10_000, endEvery: 0).shortened, defect: "refeed-context"
    ).samples()
    let rows = { (range: Range<Int>) in samples.filter { range.contains($0.rows) } }
    #expect(meanNs(rows(45..<65)) > meanNs(rows(20..<30)) + 1_000_000)
  }

  // What is sampled and shown.

  @Test func ignoreEndTokenGoesOn() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(endEvery: 20), defect: "ignore-end-token")
    let ids = try audit.records(of: "tokens").map { try $0.int32s("ids") }
    #expect(ids.contains { $0.dropLast().contains(0) })
    #expect(!audit.values("reason", of: "turn_end").contains(.string("end_token")))
  }

  @Test func doubleEndEndsEachTurnTwice() throws {
    let audit = try JournalAudit.soak(defect: "double-end")
    #expect(audit.count("turn_end") == 2 * audit.count("turn_start"))
  }

  @Test func splitUTF8ShowsPartsOfCharacters() throws {
    let audit = try JournalAudit.soak(defect: "split-utf8", package: #","text":"pieces""#)
    let text = audit.values("text", of: "tokens").compactMap(\.asString).joined()
    #expect(text.contains("\u{FFFD}") && !text.contains("😀"))
  }

  @Test func constantOutputSaysOneIDAndTheAppNoticesIt() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(endEvery: 0, budget: 64).withTurnLimit(200), defect: "constant-output:50")
    #expect(Set(try audit.samples().dropFirst(49).map(\.token)) == [2])
    #expect(audit.values("code", of: "fault").contains(.string("constant_output")))
  }

  @Test func parityDriftsAfterTrims() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(extra: #","audits":[{"at_token":5},{"at_token":300}]"#),
      defect: "parity-drift")
    let differences = audit.values("max_abs", of: "parity").compactMap(\.asDouble)
    #expect(differences.count == 2 && differences[0] == 0 && differences[1] > 1)
    #expect(audit.values("top1_equal", of: "parity") == [.bool(true), .bool(true)])
    #expect(audit.problems == [])
  }
}

extension SmallScenario {
  /// 60 tokens.
  var shortened: SmallScenario { stopped(after: 60) }

  func stopped(after tokens: Int) -> SmallScenario {
    var scenario = self
    scenario.stopAfterTokens = tokens
    return scenario
  }

  func withTurnLimit(_ limit: Int) -> SmallScenario {
    var scenario = self
    scenario.turnLimit = limit
    return scenario
  }
}
