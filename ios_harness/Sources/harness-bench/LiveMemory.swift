// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import ReferenceEngine
import StreamingLM
import Synchronization

/// Live heap of a soak with full telemetry on an engine that costs nothing: what grows here grows on a phone for hours.
struct LiveMemory {
  private static let warmUp = 5_000
  private static let tokens = 100_000
  private static let every = 20_000
  /// A reading is the least of so many tokens' worth: what waits for the control server's next look is in hand, not kept.
  private static let window = 10_000
  private static let look = 50

  func table() throws -> String {
    let readings = Readings()
    let model = try WitnessModel(json: Array(Self.model.utf8))
    try BenchSoak.run(
      vocabularySize: model.vocabularySize, tokens: Self.warmUp + Self.tokens
    ) { session in
      let engine = try WitnessEngine(
        model: model,
        setting: .init(
          memoryScale: 32, speed: EngineSpeed(decodeTokensPerS: 1e9, prefillTokensPerS: 1e9),
          nonce: 7, endEvery: 0, clock: session.clock))
      let machine = TurnMachine(
        engine: engine, plan: try ContextPlan(budget: 512, pin: 1, endIDs: [], chunk: 64),
        signals: session.signals, clock: session.clock)
      try session.modelLoaded(tookMs: 0, computeUnits: "none", isCold: false)
      var sampled = 0
      var least = Int.max
      func note(_ event: TurnEvent) throws {
        try session.record(event)
        guard case .sampled = event else { return }
        sampled += 1
        let left = (Self.warmUp - sampled % Self.every + Self.every) % Self.every
        if left < Self.window, left % Self.look == 0 {
          least = min(least, Int(chost_live_heap_bytes()))
        }
        if left == 0 {
          readings.add(least)
          least = Int.max
        }
      }
      while !session.isOver {
        let (prompt, isStart) = session.nextTurn()
        if isStart { try machine.endConversation(note) }
        try machine.begin(prompt: prompt, limit: session.turnLimit, note)
        while try machine.advance(note) { _ = session.isOver }
      }
    }
    return Self.table(readings.all)
  }

  private static func table(_ readings: [Int]) -> String {
    let first = readings.first ?? 0
    return Report.table(
      "Live heap over \(tokens) tokens after \(warmUp) of warm-up (goal: at most 64 KiB more)",
      ["tokens", "live KiB", "against the first"],
      readings.enumerated().map { index, bytes in
        [
          "\(warmUp + index * every)", Report.text(Double(bytes) / 1024, 1),
          Report.text(Double(bytes - first) / 1024, 1),
        ]
      })
  }

  private static let model = """
    {"kind":"witness","quantization":"int4","bits_per_weight":4,"weights_bytes":65536,
     "kv_row_bytes":2048,"capacity":1024,"vocab":32000,"first_id":2,"end_id":0,"bos_id":1,"chunk":64}
    """

  private final class Readings: Sendable {
    private let values = Mutex<[Int]>([])

    var all: [Int] { values.withLock { $0 } }

    func add(_ bytes: Int) { values.withLock { $0.append(bytes) } }
  }
}
