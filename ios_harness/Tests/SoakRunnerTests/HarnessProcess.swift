// SPDX-License-Identifier: Apache-2.0

import CHost
import Foundation
import HarnessCore
import Testing

/// `harness-host` in a child process, in the place of a virtual phone.
final class HarnessProcess {
  static let token = "secret"
  let container: String
  private let process = Process()
  private let conditions = Pipe()
  private let output = Pipe()
  private let errors = Pipe()

  /// Longest wait for anything.
  private static let limitS = 120.0

  static func executable(_ name: String) -> URL {
    URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: name)
  }

  init(_ changes: [String: String] = [:], named name: String = "harness-host") throws {
    container = NSTemporaryDirectory() + "hh-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(
      atPath: container + "/Documents", withIntermediateDirectories: true)
    process.executableURL = Self.executable(name)
    process.currentDirectoryURL = URL(filePath: container)
    process.environment = [
      "FLEET_TOKEN": Self.token, "FLEET_SOCKET": container + "/s", "FLEET_MEMORY_SCALE": "32",
      "FLEET_MEMORY_LIMIT_BYTES": "3006267392", "FLEET_PHYSICAL_MEMORY_BYTES": "5917753344",
      "FLEET_PRODUCT_TYPE": "iPhone14,7", "FLEET_OS": "18.5", "FLEET_BUILD": "22F76",
      "FLEET_PARENT_PID": "\(getpid())", "HOME": container,
    ].merging(changes) { $1 }
    process.standardInput = conditions
    process.standardOutput = output
    process.standardError = errors
    try process.run()
  }

  deinit {
    if process.isRunning { process.terminate() }
    try? FileManager.default.removeItem(atPath: container)
  }

  /// Waits for the line that says that clients are welcome.
  func awaitListening() throws -> HarnessProcess {
    let line = output.fileHandleForReading.availableData
    try #require(String(decoding: line, as: UTF8.self) == "fleet-harness listening\n")
    return self
  }

  func connect() throws -> HarnessClient {
    HarnessClient(try SystemError.check(chost_connect_unix(container + "/s"), "connect"))
  }

  func send(condition: String) {
    conditions.fileHandleForWriting.write(Data((condition + "\n").utf8))
  }

  func endConditions() throws { try conditions.fileHandleForWriting.close() }

  /// Whether a signal ended the process; asked after `status`.
  var isKilled: Bool { process.terminationReason == .uncaughtSignal }

  /// Waits for the end of the process.
  func status() -> Int32 {
    process.waitUntilExit()
    return process.terminationStatus
  }

  func errorText() -> String {
    String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }

  var journal: [UInt8] {
    let folder = container + "/Documents/fleet"
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder),
      let name = names.first
    else { return [] }
    return (try? Files.read("\(folder)/\(name)", limitBytes: 1 << 26)) ?? []
  }

  /// Waits until the journal holds a text. Looks at each byte once: in a debug build a search takes long.
  func awaitJournal(_ text: String) throws {
    let deadline = Date(timeIntervalSinceNow: Self.limitS)
    let wanted = Array(text.utf8)
    var seen = 0
    while true {
      let unseen = journal.dropFirst(max(0, seen - wanted.count + 1))
      if unseen.firstRange(of: wanted) != nil { return }
      seen = unseen.endIndex
      try #require(Date() < deadline, "the journal never held \(text)")
      usleep(5000)
    }
  }

  /// Pushes a small witness package and returns its entry for `start`; `extra` are further members, each with a comma in
  /// front.
  func push(
    _ quantization: String = "int4", weightsBytes: Int = 33_554_432, extra: String = ""
  ) throws -> String {
    let model = """
      {"kind":"witness","quantization":"\(quantization)","bits_per_weight":4,\
      "weights_bytes":\(weightsBytes),"kv_row_bytes":32768,"capacity":128,"vocab":1000,"first_id":2,\
      "end_id":0,"bos_id":1,"chunk":16\(extra)}
      """
    let digest = SHA256.hexadecimal(of: model.utf8)
    let path = "Documents/models/\(digest)"
    try Files.makeFolder("\(container)/\(path)")
    try Data(model.utf8).write(to: URL(filePath: "\(container)/\(path)/model.json"))
    return
      #"{"quantization":"\#(quantization)","digest":"\#(digest)","path":"\#(path)","kind":"witness"}"#
  }
}

/// One connection to the control server.
final class HarnessClient {
  private let descriptor: Int32
  private var received: [UInt8] = []

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { chost_close(descriptor) }

  func send(_ line: String) { send(Array((line + "\n").utf8)) }

  /// Sends bytes; what a server that has closed does not take is lost.
  func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        chost_send(descriptor, $0.baseAddress, Int64($0.count))
      }
      if count < 0, !chost_is_transient(Int32(count)) { return }
      if count < 0 { wait(output: true) } else { rest = rest.dropFirst(Int(count)) }
    }
  }

  /// The next line with its end, or nil when the server has closed the connection.
  func line() throws -> [UInt8]? {
    while true {
      if let end = received.firstIndex(of: 0x0A) {
        defer { received.removeFirst(end + 1) }
        return Array(received[...end])
      }
      var chunk = [UInt8](repeating: 0, count: 65_536)
      let count = chost_read(descriptor, &chunk, 65_536)
      if count == 0 || count < 0 && !chost_is_transient(Int32(count)) { return nil }
      if count > 0 { received += chunk[0..<Int(count)] } else { wait(output: false) }
    }
  }

  /// Sends a command and returns its reply; records on the way are passed over.
  func ask(_ line: String) throws -> JSONFields {
    send(line)
    while let answer = try self.line() {
      let fields = try JSONFields(try JSONReader.read(answer))
      if !fields.isNull("reply") { return fields }
    }
    throw SystemError("the server closed the connection", code: 0)
  }

  @discardableResult
  func hello() throws -> JSONFields {
    try ask(#"{"id":1,"command":"hello","token":"\#(HarnessProcess.token)"}"#)
  }

  /// All further lines until the server closes the connection.
  func rest() throws -> [[UInt8]] {
    var lines: [[UInt8]] = []
    while let line = try line() { lines.append(line) }
    return lines
  }

  private func wait(output: Bool) {
    var watch = chost_watch(
      descriptor: descriptor, wants_input: !output, wants_output: output, input: false,
      output: false)
    _ = chost_poll(&watch, 1, 1000)
  }
}

/// A small soak: budget 64, prompts of 12 to 24 ids.
struct SmallScenario {
  var stopAfterTokens: Int? = 400
  var decodeTokensPerS = 5000
  var prefillTokensPerS = 200_000
  var endEvery = 100
  var thermalPercent = "null"
  var durationS = 20.0
  var warnings = "[]"
  var ballast = "[]"
  var budget = 64
  var turnLimit = 30
  /// Further members, each with a comma in front.
  var extra = ""

  func start(packages: [String]) -> String {
    """
    {"id":2,"command":"start","run_id":"run","nonce":"0123456789abcdef","packages":\
    [\(packages.joined(separator: ","))],"scenario":{"name":"small","seed":7,\
    "duration_s":\(durationS),"speed":{"decode_tokens_per_s":\(decodeTokensPerS),\
    "prefill_tokens_per_s":\(prefillTokensPerS),\
    "thermal_percent":\(thermalPercent)},"policy":{"budget_tokens":{"6gb":\(budget),"8gb":2048},\
    "scenario_budget_tokens":null,"kv_ceiling_tokens":null,"pin":"bos","long_prompt":"refuse",\
    "headroom_percent":20},"prompts":{"min_ids":12,"max_ids":24,"turn_limit":\(turnLimit),\
    "turns_per_conversation":4},"end_every":\(endEvery),"sample_period_ms":200,"ballast":\(ballast),\
    "warnings":\(warnings),"stop_after_tokens":\(stopAfterTokens.map(String.init) ?? "null")\(extra)}}
    """
  }
}
