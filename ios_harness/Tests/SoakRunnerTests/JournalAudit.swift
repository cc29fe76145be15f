// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM
import Testing

/// Reads a journal as a host would and writes down what is wrong with it.
struct JournalAudit {
  private(set) var problems: [String] = []
  private(set) var kinds: [String: Int] = [:]
  private(set) var records: [JSONFields] = []
  private(set) var lines: [[UInt8]] = []

  private var unchained: [UInt8] = []
  /// What the records say the rows hold.
  private(set) var rows: [Token] = []
  /// Of each trim: the rows before it, and what was fed again.
  private(set) var trims: [(before: [Token], fed: [Token])] = []
  private var lastToken: Token = 0
  /// The last prediction was the prompt's last chunk, or a part of one.
  private var logitsArePrompts = false
  private var owedNotices: [Int] = []
  private var hello: JSONFields?

  init(_ lines: some Sequence<[UInt8]>) throws {
    for line in lines {
      let record = try JSONFields(try JSONReader.read(line))
      records.append(record)
      self.lines.append(line)
      try check(record, line)
    }
  }

  func count(_ kind: String) -> Int { kinds[kind, default: 0] }

  func records(of kind: String) -> [JSONFields] { records.filter { $0["kind"] == .string(kind) } }

  private mutating func check(_ record: JSONFields, _ line: [UInt8]) throws {
    let sequence = try record.integer("seq")
    let kind = try record.string("kind")
    kinds[kind, default: 0] += 1
    if sequence != records.count { problems.append("record \(records.count) has seq \(sequence)") }
    if line.count > 65_536 { problems.append("record \(sequence) is too long") }
    if kind == "hello" { hello = record }
    checkChain(record, line)
    try checkContext(record, kind)
    try checkNotice(record, kind, sequence)
  }

  private mutating func checkChain(_ record: JSONFields, _ line: [UInt8]) {
    guard case .string(let chain) = record["chain"] else { return unchained += line }
    if chain != String(SHA256.hexadecimal(of: unchained).prefix(16)) {
      problems.append("the chain breaks at \(record["seq"])")
    }
    unchained = []
  }

  private mutating func checkContext(_ record: JSONFields, _ kind: String) throws {
    switch kind {
    case "state" where record["purpose"] == .string("audit"): break
    case "state": rows = []
    case "trim": trims.append((before: rows, fed: []))
    case "prefill" where record["purpose"] == .string("audit"): break
    case "prefill":
      if try record.integer("start") != rows.count { problems.append("a gap in the rows") }
      rows += try record.int32s("ids")
      if record["purpose"] == .string("trim") { trims[trims.count - 1].fed = rows }
      logitsArePrompts = try record.string("purpose") == "turn"
    case "tokens":
      for (token, count) in zip(try record.int32s("ids"), try record.int32s("n")) {
        try checkSample(token, rowCount: Int(count))
      }
    default: break
    }
  }

  private mutating func checkSample(_ token: Token, rowCount: Int) throws {
    guard let hello else { return problems.append("tokens before hello") }
    if !logitsArePrompts { rows.append(lastToken) }
    logitsArePrompts = false
    lastToken = token
    if rowCount != rows.count { problems.append("n is \(rowCount), not \(rows.count)") }
    if rowCount > (try hello.integer("budget")) { problems.append("\(rowCount) rows") }
    let vocabulary = WitnessVocabulary(
      size: try hello.integer("vocab"), firstID: Token(try hello.integer("first_id")),
      endID: try hello.int32s("end_ids")[0], endEvery: try hello.unsigned("end_every"))
    let nonce = try #require(UInt64(try hello.string("nonce"), radix: 16))
    let expected = Mixing.witnessToken(
      rowCount: rows.count, vocabulary: vocabulary, nonce: nonce
    ) { rows[$0] }
    if token != expected { problems.append("a token is not proven") }
  }

  private mutating func checkNotice(_ record: JSONFields, _ kind: String, _ sequence: Int) throws {
    if kind == "trim" || kind == "evict" { owedNotices.append(sequence) }
    if kind == "turn_end", !owedNotices.isEmpty { problems.append("a notice is missing") }
    guard kind == "notice" else { return }
    let owed = owedNotices.isEmpty ? nil : owedNotices.removeFirst()
    if owed != (try record.integer("for_seq")) { problems.append("a notice for nothing") }
  }
}

extension JournalAudit {
  /// Runs a soak of `harness-host` to its end and reads its records as the client received them; `package` are further
  /// members of the package.
  static func soak(
    _ scenario: SmallScenario = SmallScenario(), defect: String = "", package: String = ""
  ) throws -> JournalAudit {
    let harness = try HarnessProcess(["FLEET_DEFECT": defect]).awaitListening()
    let client = try harness.connect()
    try client.hello()
    let packages = [try harness.push(extra: package), try harness.push("int8", extra: package)]
    let reply = try client.ask(scenario.start(packages: packages))
    try #require(reply["ok"] == .bool(true), "\(reply)")
    let lines = try client.rest()
    #expect(harness.status() == 0)
    #expect(lines.flatMap(\.self) == harness.journal)
    return try JournalAudit(lines)
  }

  /// A member of all records of a kind.
  func values(_ name: String, of kind: String) -> [JSONValue] { records(of: kind).map { $0[name] } }

  /// A numeric member of all records of a kind.
  func integers(_ name: String, of kind: String) throws -> [Int] {
    try records(of: kind).map { try $0.integer(name, in: Int.min...Int.max) }
  }

  /// All samples in their order, with the span of the prediction that gave each.
  func samples() throws -> [(token: Token, rows: Int, spanNs: Int)] {
    try records(of: "tokens").flatMap { record in
      let spans = zip(try record.array("start_ns"), try record.array("end_ns"))
        .map { ($1.asInteger ?? 0) - ($0.asInteger ?? 0) }
      return zip(zip(try record.int32s("ids"), try record.int32s("n")), spans).map {
        (token: $0.0, rows: Int($0.1), spanNs: $1)
      }
    }
  }
}

extension [UInt8] {
  /// Lines with their ends.
  var lines: [[UInt8]] { split(separator: 0x0A).map { $0 + [0x0A] } }
}
