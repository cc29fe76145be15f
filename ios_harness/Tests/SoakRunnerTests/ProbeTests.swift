// SPDX-License-Identifier: Apache-2.0

import CHost
import Dispatch
import Foundation
import HarnessCore
import HostPlatform
import SoakProbe
import StreamingLM
import Testing

/// An app with a pipeline of its own, soaked like any other.
@Suite struct ProbeTests {
  private func soak(
    _ scenario: SmallScenario, during: (HarnessProcess, HarnessClient) throws -> Void = { _, _ in }
  ) throws -> (records: [JSONFields], status: Int32) {
    let process = try HarnessProcess(named: "probe-example").awaitListening()
    let client = try process.connect()
    #expect(try client.hello().string("app") == "probe-example")
    #expect(try client.ask(scenario.start(packages: [])).bool("ok"))
    try during(process, client)
    let schema = try RecordSchema()
    var records: [JSONFields] = []
    for line in try client.rest() {
      let record = try JSONFields(try JSONReader.read(line))
      guard record.isNull("reply") else { continue }
      #expect(try schema.problems(of: line) == [])
      records.append(record)
    }
    return (records, process.status())
  }

  private func of(_ kind: String, _ records: [JSONFields]) -> [JSONFields] {
    records.filter { $0["kind"] == .string(kind) }
  }

  @Test func theExampleIsSoakedToItsEnd() throws {
    let (records, status) = try soak(SmallScenario(stopAfterTokens: 300))
    #expect(status == 0)
    #expect(try records.map { try $0.integer("seq") } == Array(1...records.count))
    let kinds = try records.prefix(3).map { try $0.string("kind") }
    #expect(kinds == ["hello", "load", "handler"])
    #expect(try records[0].string("engine") == "custom")
    #expect(try records[0].integer("budget") == 64)
    let rows = try of("tokens", records).flatMap { try $0.int32s("n") }
    #expect(rows.count == 300 && rows.allSatisfy { $0 <= 64 })
    let bye = try #require(records.last)
    #expect(try bye.string("reason") == "completed")
    #expect(try bye.integer("tokens_total") == 300)
  }

  @Test func eachTrimHasItsNotice() throws {
    let (records, _) = try soak(SmallScenario(stopAfterTokens: 300))
    let trims = try of("trim", records).map { try $0.integer("seq") }
    let notices = try of("notice", records).map { try $0.integer("for_seq") }
    #expect(trims.count >= 3 && notices == trims)
    #expect(try records.last?.integer("trims") == trims.count)
  }

  @Test func aMemoryWarningOfThePhoneIsAnsweredByAnEviction() throws {
    let (records, status) = try soak(SmallScenario(stopAfterTokens: 600)) { process, _ in
      try process.awaitJournal(#""kind":"tokens""#)
      process.send(condition: #"{"n":1,"event":"memory_warning"}"#)
    }
    #expect(status == 0)
    #expect(try of("memory_warning", records).map { try $0.string("origin") } == ["kernel"])
    #expect(try of("evict", records).map { try $0.int32s("warnings") } == [[1]])
    #expect(try records.last?.integer("warnings") == 1)
  }

  @Test func stopEndsTheTurnAndTheApp() throws {
    let (records, status) = try soak(SmallScenario(stopAfterTokens: nil)) { process, client in
      try process.awaitJournal(#""kind":"tokens""#)
      client.send(#"{"id":9,"command":"stop"}"#)
    }
    #expect(status == 0)
    #expect(try of("turn_end", records).last?.string("reason") == "cancelled")
    #expect(try records.last?.string("reason") == "stopped")
  }

  @Test func aPipelineThatThrowsEndsTheSoakWithItsWords() throws {
    let folder = NSTemporaryDirectory() + "probe-\(UUID().uuidString.prefix(8))"
    try Files.makeFolder(folder)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let model = ProbeModel(
      quantization: .int8, weightsBytes: 1, capacity: 64, vocabularySize: 10, endIDs: [0], chunk: 8)
    let platform = try VirtualPhone(
      Environment(["FLEET_PHYSICAL_MEMORY_BYTES": "8021032960"]))
    let probe = try SoakProbe(
      app: ProbeApp(name: "own", version: "1", budgetTokens: 64, model: model),
      platform: platform, container: folder
    ) { _ in throw EngineError.nonFinite }
    let listener = try SystemError.check(chost_listen_unix(folder + "/s"), "listen")
    let status = Status()
    try Worker.start { status.set((try? probe.serve(listener: listener, token: "secret")) ?? 99) }
    let client = HarnessClient(try SystemError.check(chost_connect_unix(folder + "/s"), "connect"))
    try client.hello()
    client.send(SmallScenario().start(packages: []))
    let kinds = try client.rest().map { try JSONFields(try JSONReader.read($0)) }
    #expect(kinds.contains { $0["message"] == .string("the logits are not finite") })
    #expect(kinds.last?["reason"] == .string("fault"))
    #expect(status.wait() == 1)
  }

  private final class Status: @unchecked Sendable {
    private let done = DispatchSemaphore(value: 0)
    private var value: Int32 = -1

    func set(_ value: Int32) {
      self.value = value
      done.signal()
    }

    func wait() -> Int32 {
      done.wait()
      return value
    }
  }
}
