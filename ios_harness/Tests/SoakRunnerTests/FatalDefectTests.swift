// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import Testing

@testable import SoakRunner

/// Defects that end the app or what it says of itself; their launches do not end like others.
@Suite struct FatalDefectTests {
  private func launch(
    _ defect: String, _ scenario: SmallScenario = SmallScenario()
  ) throws -> (HarnessProcess, HarnessClient) {
    let harness = try HarnessProcess(["FLEET_DEFECT": defect]).awaitListening()
    let client = try harness.connect()
    try client.hello()
    _ = try client.ask(scenario.start(packages: [try harness.push()]))
    return (harness, client)
  }

  private func journal(_ harness: HarnessProcess) throws -> JournalAudit {
    try JournalAudit(harness.journal.lines)
  }

  @Test func crashEndsTheAppByASignal() throws {
    let (harness, _) = try launch("crash:30")
    #expect(harness.status() == 6 && harness.isKilled)
    let audit = try journal(harness)
    #expect(audit.problems == [] && audit.count("bye") == 0)
  }

  @Test func exitSilentlyLooksLikeSuccessWithoutAFarewell() throws {
    let (harness, _) = try launch("exit-silently:30")
    #expect(harness.status() == 0 && !harness.isKilled)
    #expect(try journal(harness).count("bye") == 0)
  }

  @Test func hangPredictsNothingMoreAndLives() throws {
    let (harness, client) = try launch("hang:30")
    try harness.awaitJournal(#""tokens_total":30"#)
    let before = try journal(harness)
    client.send(#"{"id":4,"command":"stop"}"#)
    try harness.awaitJournal("\"seq\":\(before.records.count + 3),")
    let after = try journal(harness)
    #expect(after.count("tokens") == before.count("tokens") && after.count("bye") == 0)
    #expect(after.count("sample") > before.count("sample"))
    try harness.endConditions()
    #expect(harness.status() == 18)
  }

  @Test func stopsEarlyClaimsToBeComplete() throws {
    let audit = try JournalAudit.soak(
      SmallScenario(stopAfterTokens: nil), defect: "stops-early:50")
    let bye = try #require(audit.records.last)
    #expect(bye["reason"] == .string("completed") && bye["tokens_total"] == .integer(50))
  }

  @Test func telemetryGapLosesOneSample() throws {
    let (harness, client) = try launch(
      "telemetry-gap:20", SmallScenario(stopAfterTokens: 300, decodeTokensPerS: 500))
    _ = try client.rest()
    #expect(harness.status() == 0)
    let numbers = try harness.journal.lines.map {
      try JSONFields(try JSONReader.read($0)).integer("seq")
    }
    let gaps = zip(numbers, numbers.dropFirst()).filter { $1 != $0 + 1 }
    #expect(gaps.count == 1 && gaps.allSatisfy { $0 >= 19 && $1 == $0 + 2 })
  }

  @Test func telemetryStopsAndTheAppGoesOn() throws {
    let (harness, client) = try launch("telemetry-stops:50")
    #expect(try client.rest().count == 49)
    #expect(harness.status() == 0)
    #expect(try journal(harness).records.count == 49)
  }

  @Test func journalDiffersFromTheStreamInOneRecord() throws {
    let (harness, client) = try launch("journal-differs:20")
    let stream = try client.rest()
    let journal = harness.journal.lines
    let different = zip(stream, journal).enumerated().filter { $1.0 != $1.1 }.map(\.offset)
    #expect(different == [19] && stream.count == journal.count)
    #expect(try JournalAudit(journal).problems == [])
    #expect(try JournalAudit(stream).problems.count == 1)
  }
}
