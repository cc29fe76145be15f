// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import ReferenceEngine
import StreamingLM
import Synchronization

/// Share of the time that is spent inside the engine: the rest is what the pipeline costs.
///
/// Of wall time it means something on a quiet machine only; of processor time on any. Control server and client of the
/// sink's telemetry run on other threads of this process, as does the consumer of the stream.
struct EngineShare {
  let weights: DecoderWeights

  private static let tokens = 4000
  /// The contract's for the 6 GB class. A trim syncs four records, so a small budget measures the disk.
  private static let budget = 1024
  /// Sessions of the stream: short conversations give a token about the 0.8 ms that the stream's goal is stated for.
  private static let streams = 10

  func table() async throws -> String {
    let sink = try sinkShare()
    let stream = try await streamShare()
    return Report.table(
      "Share of time inside the engine, reference engine, \(Self.tokens) tokens",
      [
        "delivery", "of wall time", "of the pipeline thread's processor time",
        "of the process' processor time", "engine ms a token", "pipeline µs a token (wall)",
        "goal",
      ],
      [
        ["sink closure, telemetry on"] + sink.cells + ["0.995"],
        ["stream to a consumer"] + stream.cells + ["0.97"],
      ])
  }

  /// Inside the engine, of all that passed since a beginning but the reading of the clocks.
  private struct Share: Sendable {
    let cells: [String]

    /// `isOneThread`: the pipeline runs on the calling thread alone.
    init(
      _ stopwatches: Stopwatch.Pair, since begin: Beginning, tokens: Int, isOneThread: Bool = false
    ) {
      let (inside, own) = (stopwatches.inner, stopwatches.ownNs)
      let wallNs = chost_monotonic_ns() - begin.wallNs - own.wall
      let processNs = chost_process_cpu_ns() - begin.processNs - own.cpu
      let threadNs = chost_thread_cpu_ns() - begin.threadNs - own.cpu
      let cpuNs = Double(inside.cpuNs)
      cells = [
        Report.text(Double(inside.wallNs) / Double(wallNs), 4),
        isOneThread ? Report.text(cpuNs / Double(threadNs), 4) : "",
        Report.text(cpuNs / Double(processNs), 4),
        Report.text(cpuNs / Double(tokens) / 1e6),
        Report.text(Double(wallNs - inside.wallNs) / Double(tokens) / 1e3, 1),
      ]
    }
  }

  private struct Beginning {
    let processNs = chost_process_cpu_ns()
    let threadNs = chost_thread_cpu_ns()
    let wallNs = chost_monotonic_ns()
  }

  private static func plan() throws -> ContextPlan {
    try ContextPlan(budget: budget, pin: 1, endIDs: [], chunk: 64)
  }

  private func sinkShare() throws -> Share {
    let weights = weights
    let stopwatches = Stopwatch.Pair()
    let shared = Shared()
    try BenchSoak.run(vocabularySize: weights.shape.vocabularySize, tokens: Self.tokens) {
      session in
      let machine = TurnMachine(
        engine: stopwatches.around(try DecoderEngine(weights: weights)),
        plan: try Self.plan(), signals: session.signals, clock: session.clock)
      try session.modelLoaded(tookMs: 0, computeUnits: "cpu", isCold: false)
      let begin = Beginning()
      while !session.isOver {
        let (prompt, isStart) = session.nextTurn()
        if isStart { try machine.endConversation(session.record) }
        try machine.begin(prompt: prompt, limit: session.turnLimit, session.record)
        while try machine.advance(session.record) { _ = session.isOver }
      }
      shared.set(Share(stopwatches, since: begin, tokens: Self.tokens, isOneThread: true))
    }
    return shared.value ?? Share(stopwatches, since: Beginning(), tokens: 1)
  }

  private final class Shared: Sendable {
    private let box = Mutex<Share?>(nil)

    var value: Share? { box.withLock { $0 } }

    func set(_ share: Share) { box.withLock { $0 = share } }
  }

  private func streamShare() async throws -> Share {
    let stopwatches = Stopwatch.Pair()
    let prompt = (1...48).map { Token($0) }
    let limit = Self.tokens / Self.streams
    let begin = Beginning()
    var tokens = 0
    for _ in 0..<Self.streams {
      let session = StreamingSession(
        engine: stopwatches.around(try DecoderEngine(weights: weights)),
        plan: try Self.plan())
      for try await element in session.turn(prompt: prompt, limit: limit) {
        if case .token = element { tokens += 1 }
      }
    }
    return Share(stopwatches, since: begin, tokens: tokens)
  }
}
