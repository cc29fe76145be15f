// SPDX-License-Identifier: Apache-2.0

@testable import CoreMLEngine
import Foundation
import HarnessCore
@testable import SoakRunner
import StreamingLM
import Testing

/// Whole soaks of the Core ML engine in this process, from the host's order to `bye`.
@Suite struct CoreMLSoakTests {
  @Test func aSoakRecordsTheTokensOfTheReferenceDecoderAndItsSurfaces() async throws {
    let records = try await onOwnThread {
      try Self.soak(StandInKit(faults: #""ignores_backings":true"#))
    }
    #expect(records.last?["kind"] == .string("bye"))
    #expect(records.last?["reason"] == .string("completed"))
    #expect(records.contains { $0["kind"] == .string("trim") })
    let hello = try #require(records.first)
    #expect(hello["engine"] == .string("coreml"))
    let samples = records.filter { $0["kind"] == .string("sample") }
    guard case .integer(let surfaces) = samples.last?["surfaces"] else {
      return #expect(samples.last == nil, "a sample without surfaces")
    }
    #expect(surfaces >= 150)  // one for each prediction, which the stand-in did not back
    try expectFirstTurnOfReference(records)
  }

  @Test func aSoakWithBackingsHoldsNoSurfaces() async throws {
    let records = try await onOwnThread { try Self.soak(StandInKit()) }
    let samples = records.filter { $0["kind"] == .string("sample") }
    #expect(!samples.isEmpty && samples.allSatisfy { $0["surfaces"] == .integer(0) })
  }

  private func expectFirstTurnOfReference(_ records: [[String: JSONValue]]) throws {
    let turn = try #require(records.first { $0["kind"] == .string("turn_start") })
    let firstEnd = try #require(records.firstIndex { $0["kind"] == .string("turn_end") })
    let prompt = Self.ids(turn["used_ids"])
    let tokens = records[..<firstEnd].filter { $0["kind"] == .string("tokens") }
      .flatMap { Self.ids($0["ids"]) }
    #expect(tokens.count >= 10)
    #expect(try tokens == StandInKit.reference().generate(tokens.count, after: prompt))
  }

  private static func ids(_ value: JSONValue?) -> [Token] {
    guard case .array(let items) = value else { return [] }
    return items.compactMap { if case .integer(let id) = $0 { Token(id) } else { nil } }
  }

  /// Runs 150 tokens and returns the journal's records.
  private static func soak(_ kit: StandInKit) throws -> [[String: JSONValue]] {
    let container = FileManager.default.temporaryDirectory
      .appendingPathComponent("soak-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: container) }
    let digest = try KitFolder.digest(kit.folder)
    let models = container.appendingPathComponent("Documents/models")
    try FileManager.default.createDirectory(at: models, withIntermediateDirectories: true)
    try FileManager.default.copyItem(at: kit.folder, to: models.appendingPathComponent(digest))
    let launch = try SoakLaunch(
      platform: QuietPhone(), container: container.path,
      readers: [
        "coreml": CoreMLSoakModel.reader(cache: container.appendingPathComponent("cache"))
      ])
    let plan = try launch.activity.plan(order(digest), launch)
    #expect(try launch.activity.run(plan, launch) == .completed)
    let journal = try Data(contentsOf: URL(filePath: launch.journal.path))
    return try journal.split(separator: 0x0A).map { line in
      guard case .object(let members) = try JSONReader.read(line) else { return [:] }
      return members
    }
  }

  private static func order(_ digest: String) throws -> JSONFields {
    let text = """
      {"run_id":"run","nonce":"0123456789abcdef","packages":[{"quantization":"int4",\
      "digest":"\(digest)","path":"Documents/models/\(digest)","kind":"coreml"}],\
      "scenario":{"name":"small","seed":7,"duration_s":600.0,\
      "speed":{"decode_tokens_per_s":1.0,"prefill_tokens_per_s":1.0},\
      "policy":{"budget_tokens":{"6gb":96,"8gb":96},"scenario_budget_tokens":null,\
      "kv_ceiling_tokens":null,"pin":"none","long_prompt":"refuse","headroom_percent":20},\
      "prompts":{"min_ids":12,"max_ids":24,"turn_limit":60,"turns_per_conversation":8},\
      "end_every":0,"sample_period_ms":1000,"ballast":[],"warnings":[],"stop_after_tokens":150}}
      """
    return try JSONFields(JSONReader.read(text.utf8))
  }

  /// An iPhone 14 with nothing to say.
  private struct QuietPhone: DevicePlatform {
    let identity = DeviceIdentity(
      productType: "iPhone14,7", os: "18.5", osBuild: "22F76",
      physicalMemoryBytes: 5_900_000_000, pageBytes: 16_384, processID: 1)
    let memoryScale = 1
    let limitBytes: Int? = 3_000_000_000

    func footprintHostBytes() -> Int { 100_000_000 }
  }
}
