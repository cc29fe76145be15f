// SPDX-License-Identifier: Apache-2.0

import Foundation
import HarnessCore
import Testing

/// What clients and the phone may do to a launch.
@Suite struct ControlServerTests {
  private let unhurried = SmallScenario(stopAfterTokens: nil, decodeTokensPerS: 400)

  private func listening(_ changes: [String: String] = [:]) throws -> HarnessProcess {
    try HarnessProcess(changes).awaitListening()
  }

  private func start(_ harness: HarnessProcess, _ scenario: SmallScenario) throws -> HarnessClient {
    let client = try harness.connect()
    try client.hello()
    let reply = try client.ask(scenario.start(packages: [try harness.push()]))
    try #require(reply["ok"] == .bool(true))
    return client
  }

  @Test func aWrongTokenIsRefusedAndTheConnectionClosed() throws {
    let client = try listening().connect()
    let reply = try client.ask(#"{"id":7,"command":"hello","token":"secrets"}"#)
    #expect(reply["ok"] == .bool(false) && reply["error"] == .string("token"))
    #expect(reply["id"] == .integer(7))
    #expect(try client.line() == nil)
  }

  @Test func beforeHelloNothingIsAnswered() throws {
    let client = try listening().connect()
    client.send(#"{"id":1,"command":"status"}"#)
    client.send("garbage")
    client.send(#"{"id":2,"command":"stop"}"#)
    #expect(try client.hello()["reply"] == .string("hello"))
  }

  @Test(arguments: [
    ("garbage", JSONValue.null), ("[]", .null), ("{\"id\":3}", .integer(3)), ("", .null),
    (#"{"id":4,"command":"dance"}"#, .integer(4)),
    (#"{"id":5,"command":"resume","launch":1}"#, .integer(5)),
  ])
  func whatIsNoCommandGetsAnError(line: String, id: JSONValue) throws {
    let client = try listening().connect()
    try client.hello()
    let reply = try client.ask(line)
    #expect(reply["reply"] == .string("error") && reply["error"] == .string("command"))
    #expect(reply["id"] == id)
    #expect(try client.ask(#"{"id":6,"command":"status"}"#)["started"] == .bool(false))
  }

  @Test func aLineOverAMebibyteClosesTheConnection() throws {
    let harness = try listening()
    let client = try harness.connect()
    try client.hello()
    client.send([UInt8](repeating: 0x20, count: 1024 * 1024 + 70_000))
    #expect(try client.line() == nil)
    #expect(try harness.connect().hello()["ok"] == .bool(true))
  }

  @Test func aNewClientReplacesTheOldOneAndAStrangerDoesNot() throws {
    let harness = try listening()
    let old = try harness.connect()
    try old.hello()
    let stranger = try harness.connect()
    _ = try stranger.ask(#"{"id":1,"command":"hello","token":"guess"}"#)
    #expect(try old.ask(#"{"id":1,"command":"status"}"#)["ok"] == .bool(true))
    let new = try harness.connect()
    try new.hello()
    #expect(try old.line() == nil)
    #expect(try new.ask(#"{"id":1,"command":"status"}"#)["ok"] == .bool(true))
  }

  @Test func aResumeGoesOnAfterTheRecordItNames() throws {
    let harness = try listening()
    var first: HarnessClient? = try start(harness, unhurried)
    var lines: [[UInt8]] = []
    for _ in 0..<12 { lines.append(try #require(try first?.line())) }
    first = nil
    let second = try harness.connect()
    let hello = try second.hello()
    #expect(hello["started"] == .bool(true))
    let launch = try hello.string("launch")
    let other = try second.ask(#"{"id":3,"command":"resume","launch":"other","seq":12}"#)
    #expect(other["error"] == .string("launch"))
    let future = try second.ask(#"{"id":3,"command":"resume","launch":"\#(launch)","seq":99999}"#)
    #expect(future["error"] == .string("command"))
    _ = try second.ask(#"{"id":3,"command":"resume","launch":"\#(launch)","seq":12}"#)
    second.send(#"{"id":4,"command":"stop"}"#)
    lines += try second.rest().filter { try !JSONFields(try JSONReader.read($0)).has("reply") }
    #expect(harness.status() == 0)
    #expect(lines.flatMap(\.self) == harness.journal)
    #expect(try JournalAudit(lines).problems == [])
  }

  @Test func aClientThatNeverReadsDelaysNothing() throws {
    let harness = try listening()
    var client: HarnessClient? = try start(harness, SmallScenario(stopAfterTokens: 4000))
    // A pipeline that waited for its client would never get there.
    try harness.awaitJournal(#""kind":"bye""#)
    #expect(harness.journal.count > 400_000)  // more than a socket takes unread
    _ = client
    client = nil
    #expect(harness.status() == 0)
  }

  @Test func stopCancelsTheTurnAndSaysBye() throws {
    let harness = try listening()
    let client = try start(harness, unhurried)
    try harness.awaitJournal(#""kind":"tokens""#)
    #expect(try client.ask(#"{"id":4,"command":"stop"}"#)["ok"] == .bool(true))
    let audit = try JournalAudit(harness.status() == 0 ? harness.journal.lines : [])
    #expect(audit.records(of: "turn_end").last?["reason"] == .string("cancelled"))
    #expect(audit.records.last?["reason"] == .string("stopped"))
  }

  @Test func stopBeforeAStartEndsTheApp() throws {
    let harness = try listening()
    let client = try harness.connect()
    try client.hello()
    #expect(try client.ask(#"{"id":4,"command":"stop"}"#)["ok"] == .bool(true))
    #expect(harness.status() == 0)
  }

  @Test func aSecondStartIsRefused() throws {
    let harness = try listening()
    let client = try start(harness, unhurried)
    let reply = try client.ask(unhurried.start(packages: [try harness.push()]))
    #expect(reply["error"] == .string("started"))
  }

  @Test(arguments: [
    ("\"seed\":7", "\"seed\":-7", "scenario.seed"),
    ("\"pin\":\"bos\"", "\"pin\":\"tail\"", "scenario.policy.pin"),
    ("\"nonce\":\"0", "\"nonce\":\"x", "nonce"),
    ("\"kind\":\"witness\"", "\"kind\":\"coreml\"", "no engine for packages of kind 'coreml'"),
    ("\"digest\":\"", "\"digest\":\"00", "digest"),
    ("\"path\":\"", "\"path\":\"../", "leaves the container"),
    ("\"quantization\":\"int4\"", "\"quantization\":\"int8\"", "packages has no int4"),
    ("\"max_ids\":24", "\"max_ids\":11", "scenario.prompts.max_ids"),
    ("\"6gb\":64", "\"6gb\":3", "pin 1 is over a quarter"),
  ])
  func anOrderThatCannotBeReadIsRefusedWithItsReason(
    old: String, new: String, reason: String
  ) throws {
    let harness = try listening()
    let client = try harness.connect()
    try client.hello()
    let order = SmallScenario().start(packages: [try harness.push()])
      .replacingOccurrences(of: old, with: new)
    let reply = try client.ask(order)
    #expect(reply["error"] == .string("scenario"))
    #expect(try reply.string("message").contains(reason), "\(reply["message"])")
    #expect(try client.ask(#"{"id":3,"command":"status"}"#)["started"] == .bool(false))
  }

  @Test func theEndOfTheConditionsIsTheEndOfTheApp() throws {
    let harness = try listening()
    _ = try start(harness, unhurried)
    try harness.endConditions()
    #expect(harness.status() == 18)
  }

  @Test func aKernelWarningIsRecordedAndAnsweredByAnEviction() throws {
    let harness = try listening()
    let client = try start(harness, unhurried)
    try harness.awaitJournal(#""kind":"tokens""#)
    harness.send(condition: "not json")
    harness.send(condition: #"{"n":1,"event":"memory_warning"}"#)
    try harness.awaitJournal(#""kind":"evict""#)
    client.send(#"{"id":4,"command":"stop"}"#)
    _ = try client.rest()
    let audit = try JournalAudit(harness.journal.lines)
    #expect(audit.problems == [])
    #expect(audit.records(of: "memory_warning")[0]["origin"] == .string("kernel"))
    #expect(audit.records(of: "evict")[0]["warnings"] == .array([.integer(1)]))
  }

  @Test func inTheBackgroundTheStateIsGoneUntilTheAppIsBack() throws {
    let harness = try listening()
    let client = try start(harness, unhurried)
    try harness.awaitJournal(#""kind":"tokens""#)
    harness.send(condition: #"{"n":1,"event":"foreground","value":false}"#)
    try harness.awaitJournal(#""purpose":"background""#)
    harness.send(condition: #"{"n":2,"event":"battery","level_percent":50,"charging":false}"#)
    try harness.awaitJournal(#""battery_percent":50"#)
    harness.send(condition: #"{"n":3,"event":"foreground","value":true}"#)
    try harness.awaitJournal(#""purpose":"resume""#)
    client.send(#"{"id":4,"command":"stop"}"#)
    _ = try client.rest()
    let audit = try JournalAudit(harness.journal.lines)
    #expect(audit.problems == [])
    let away = audit.records.drop { $0["event"] != .string("background") }
      .prefix { $0["event"] != .string("foreground") }
      .drop { $0["purpose"] != .string("background") }
    #expect(!away.contains { $0["kind"] == .string("prefill") || $0["kind"] == .string("tokens") })
  }

  @Test func anUnknownDefectEndsTheAppBeforeItListens() throws {
    let harness = try HarnessProcess(["FLEET_DEFECT": "no-such"])
    #expect(harness.status() == 64)
    #expect(harness.errorText() == "harness-host: no defect 'no-such'\n")
    #expect(!FileManager.default.fileExists(atPath: harness.container + "/s"))
  }

  @Test(arguments: [("FLEET_TOKEN", ""), ("FLEET_MEMORY_SCALE", "big")])
  func anUnusableEnvironmentIsNamed(name: String, value: String) throws {
    let harness = try HarnessProcess([name: value])
    #expect(harness.status() == 2)
    #expect(harness.errorText().contains(name))
  }
}
