// SPDX-License-Identifier: Apache-2.0

import CHost
import StreamingLM
import Synchronization

/// An engine that sums the time its calls take.
final class Stopwatch: InferenceEngine {
  private let engine: any InferenceEngine
  /// Shared with whoever asks while the engine runs elsewhere.
  private let inside: Total

  /// Nanoseconds inside the engine; one thread adds and another reads.
  final class Total: Sendable {
    private let wall = Atomic<Int64>(0)
    private let cpu = Atomic<Int64>(0)
    private let calls = Atomic<Int64>(0)

    /// Calls of the engine.
    var callCount: Int64 { calls.load(ordering: .relaxed) }

    var wallNs: Int64 { wall.load(ordering: .relaxed) }
    var cpuNs: Int64 { cpu.load(ordering: .relaxed) }

    func add<Value>(_ call: () throws(EngineError) -> Value) throws(EngineError) -> Value {
      let (wallNs, cpuNs) = (chost_monotonic_ns(), chost_thread_cpu_ns())
      defer {
        calls.add(1, ordering: .relaxed)
        wall.add(chost_monotonic_ns() - wallNs, ordering: .relaxed)
        cpu.add(chost_thread_cpu_ns() - cpuNs, ordering: .relaxed)
      }
      return try call()
    }
  }

  /// What reading the clocks costs around one call beside what it counts as the engine's, in nanoseconds of wall and
  /// of processor time: the pipeline is not to blame for it.
  static func ownCost() -> (wallNs: Int64, cpuNs: Int64) {
    let rounds: Int64 = 20_000
    let total = Total()
    let (wallNs, cpuNs) = (chost_monotonic_ns(), chost_thread_cpu_ns())
    for _ in 0..<rounds { try? total.add { () throws(EngineError) in } }
    return (
      (chost_monotonic_ns() - wallNs - total.wallNs) / rounds,
      (chost_thread_cpu_ns() - cpuNs - total.cpuNs) / rounds
    )
  }

  init(_ engine: any InferenceEngine, total: Total) {
    self.engine = engine
    inside = total
  }

  var capacity: Int { engine.capacity }
  var stateBytes: Int { engine.stateBytes }

  func makeState(for purpose: StatePurpose) throws(EngineError) {
    try inside.add { () throws(EngineError) in try engine.makeState(for: purpose) }
  }

  func releaseState(for purpose: StatePurpose) {
    try? inside.add { () throws(EngineError) in engine.releaseState(for: purpose) }
  }

  func predict(_ chunk: Chunk) throws(EngineError) {
    try inside.add { () throws(EngineError) in try engine.predict(chunk) }
  }

  func sample() throws(EngineError) -> Token {
    try inside.add { () throws(EngineError) in try engine.sample() }
  }
}
