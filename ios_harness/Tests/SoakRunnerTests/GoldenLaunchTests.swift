// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import Testing

/// The launch and the schema that both languages' tests share.
@Suite struct GoldenLaunchTests {
  private func golden() throws -> [[UInt8]] {
    try Files.read(protocolFolder + "golden.ndjson", limitBytes: 1 << 20).lines
  }

  @Test func theGoldenLaunchIsProvenAndHoldsEveryKind() throws {
    let audit = try JournalAudit(try golden())
    #expect(audit.problems == [])
    #expect(Set(try RecordSchema().kinds.keys) == Set(audit.kinds.keys))
  }

  @Test func everyGoldenRecordHasTheFieldsOfItsKind() throws {
    let schema = try RecordSchema()
    for line in try golden() { #expect(try schema.problems(of: line) == []) }
  }

  @Test func aMissingAndAForeignFieldAreFound() throws {
    let line = #"{"launch":"x","seq":1,"t_ns":1,"kind":"heartbeat","wall_time_s":1.0,"extra":1}"#
    #expect(
      try RecordSchema().problems(of: Array(line.utf8)).sorted() == [
        "heartbeat has extra", "heartbeat lacks suspended_s",
      ])
  }
}

/// The names of each kind's fields, from `telemetry.schema.json`.
struct RecordSchema {
  private(set) var kinds: [String: (required: Set<String>, allowed: Set<String>)] = [:]

  init() throws {
    let bytes = try Files.read(protocolFolder + "telemetry.schema.json", limitBytes: 1 << 20)
    let schema = try JSONFields(try JSONReader.read(bytes))
    let definitions = try schema.object("$defs")
    for kind in try schema.object("properties").object("kind").array("enum") {
      let name = try #require(kind.asString)
      let definition = try definitions.object(name)
      #expect(definition["additionalProperties"] == .bool(false))
      let required = try definition.array("required").compactMap(\.asString)
      let allowed = try #require(definition["properties"].asObject).keys
      kinds[name] = (Set(required), Set(allowed))
    }
  }

  func problems(of line: [UInt8]) throws -> [String] {
    let record = try #require(try JSONReader.read(line).asObject)
    let kind = try #require(record["kind"]?.asString)
    guard let fields = kinds[kind] else { return ["no kind \(kind)"] }
    return fields.required.subtracting(record.keys).map { "\(kind) lacks \($0)" }
      + Set(record.keys).subtracting(fields.allowed).map { "\(kind) has \($0)" }
  }
}
