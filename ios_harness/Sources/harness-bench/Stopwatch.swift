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

    var wallNs: Int64 { wall.load(ordering: .relaxed) }
    var cpuNs: Int64 { cpu.load(ordering: .relaxed) }

    func add<Value>(_ call: () throws(EngineError) -> Value) throws(EngineError) -> Value {
      let (wallNs, cpuNs) = (chost_monotonic_ns(), chost_thread_cpu_ns())
      defer {
        wall.add(chost_monotonic_ns() - wallNs, ordering: .relaxed)
        cpu.add(chost_thread_cpu_ns() - cpuNs, ordering: .relaxed)
      }
      return try call()
    }
  }

  /// Two around one engine: what the outer one counts more than the inner one is what a stopwatch costs in its place,
  /// between predictions that empty the processor's caches. A loop over it would find it cheaper than it is.
  struct Pair: Sendable {
    let inner = Total()
    private let outer = Total()

    /// What both stopwatches cost that is not counted as the engine's, in nanoseconds of wall and processor time.
    var ownNs: (wall: Int64, cpu: Int64) {
      (2 * (outer.wallNs - inner.wallNs), 2 * (outer.cpuNs - inner.cpuNs))
    }

    func around(_ engine: any InferenceEngine) -> Stopwatch {
      Stopwatch(Stopwatch(engine, total: inner), total: outer)
    }
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
