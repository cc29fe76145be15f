// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import HostPlatform
import SoakProbe
import StreamingLM

/// A soak inside this process, with journal, control server and a client that reads all records: telemetry as on a phone.
enum BenchSoak {
  private static let token = "bench"

  /// Runs a pipeline with full telemetry until it returns.
  ///
  /// - Parameters:
  ///   - vocabularySize: Of the model, for its prompts.
  ///   - tokens: Samples after which the soak is over.
  ///   - pipeline: Runs on a thread of its own.
  /// - Throws: `SystemError` when the folder or the socket cannot be made.
  static func run(
    vocabularySize: Int, tokens: Int,
    _ pipeline: @escaping @Sendable (ProbeSession) throws -> Void
  ) throws {
    let folder = "/tmp/harness-bench-\(chost_process_id())-\(LaunchIdentifier())"
    try Files.makeFolder(folder)
    let model = ProbeModel(
      quantization: .int4, weightsBytes: 1, capacity: 4096, vocabularySize: vocabularySize,
      endIDs: [0], chunk: 64)
    let probe = try SoakProbe(
      app: ProbeApp(name: "bench", version: "1", budgetTokens: 2048, model: model),
      platform: try VirtualPhone(Environment(["FLEET_PHYSICAL_MEMORY_BYTES": "8021032960"])),
      container: folder, pipeline: pipeline)
    let path = folder + "/s"
    let listener = try SystemError.check(chost_listen_unix(path), "listen on \(path)")
    try Worker.start { readAll(path, start(tokens)) }
    _ = try probe.serve(listener: listener, token: token)
  }

  private static func start(_ tokens: Int) -> String {
    """
    {"id":1,"command":"hello","token":"\(token)"}
    {"id":2,"command":"start","run_id":"bench","nonce":"0123456789abcdef","packages":[],\
    "scenario":{"name":"bench","seed":7,"duration_s":3600.0,\
    "speed":{"decode_tokens_per_s":1.0,"prefill_tokens_per_s":1.0},\
    "policy":{"budget_tokens":{},"scenario_budget_tokens":null,"kv_ceiling_tokens":null,\
    "pin":"none","long_prompt":"refuse","headroom_percent":20},\
    "prompts":{"min_ids":48,"max_ids":64,"turn_limit":400,"turns_per_conversation":16},\
    "end_every":0,"sample_period_ms":1000,"ballast":[],"warnings":[],"stop_after_tokens":\(tokens)}}

    """
  }

  /// A host that takes every record at once.
  private static func readAll(_ path: String, _ commands: String) {
    let descriptor = chost_connect_unix(path)
    if descriptor < 0 { return }
    defer { chost_close(descriptor) }
    let bytes = Array(commands.utf8)
    _ = chost_send(descriptor, bytes, Int64(bytes.count))
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      var watch = chost_watch(
        descriptor: descriptor, wants_input: true, wants_output: false, input: false,
        output: false)
      _ = chost_poll(&watch, 1, 1000)
      let count = chost_read(descriptor, &buffer, Int64(buffer.count))
      if count == 0 || count < 0 && !chost_is_transient(Int32(count)) { return }
    }
  }
}
