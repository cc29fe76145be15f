// SPDX-License-Identifier: Apache-2.0

import CHost
import ReferenceEngine
import StreamingLM

/// What a decode step costs by context and by where the cache is kept, beside the operations it takes.
struct DecodeCost {
  let weights: DecoderWeights

  private static let contexts = [128, 512, 1024, 2048]
  private static let steps = 32
  /// Feeding everything again takes up to seconds a step.
  private static let statelessSteps = 2

  /// How the cache is kept.
  private enum Way: String, CaseIterable {
    case stateful
    /// With output backings: two caches that change places, as a host that keeps its cache in features has them.
    case explicit
    case stateless
    /// Without output backings: no way to keep a cache, but what forgetting them costs.
    case explicitFresh = "explicit, no output backings"

    /// The factor of its FLOP ratio that it may cost.
    var goal: String { self == .explicitFresh ? "none" : "0.3 to 3" }
  }

  private struct Measured {
    var stepNs = 0.0
    var projectionNs = 0.0
    var attentionNs = 0.0
  }

  func table() throws -> String {
    var stateful: [Int: Measured] = [:]
    var rows: [[String]] = []
    for way in Way.allCases {
      for context in Self.contexts {
        let measured = try measure(way, context)
        if way == .stateful { stateful[context] = measured }
        let base = stateful[context] ?? measured
        let ratio = measured.stepNs / base.stepNs
        let expected = operations(way, context) / operations(.stateful, context)
        rows.append([
          way.rawValue, "\(context)", Report.text(measured.stepNs / 1e6),
          Report.text(1e9 / measured.stepNs, 1), Report.text(measured.projectionNs / 1e6),
          Report.text(measured.attentionNs / 1e6), Report.text(ratio),
          Report.text(expected), Report.text(ratio / expected), way.goal,
        ])
      }
    }
    return Report.table(
      "Decode step of the reference engine, processor time of its one thread",
      [
        "cache", "context", "ms", "tokens/s", "projections ms", "attention ms", "x stateful",
        "FLOP ratio", "measured / FLOP", "goal",
      ], rows)
  }

  /// Multiplications and additions of one step: a stateless one consumes all tokens, but its head only one.
  private func operations(_ way: Way, _ context: Int) -> Double {
    let shape = weights.shape
    let tokens = way == .stateless ? 1...context : context...context
    let attention = tokens.reduce(0.0) { $0 + Double(shape.attentionOperations(rows: $1)) }
    return Double(tokens.count) * Double(shape.layerOperations) + attention
      + Double(shape.headOperations)
  }

  private func measure(_ way: Way, _ context: Int) throws -> Measured {
    let mode: DecoderEngine.CacheMode =
      switch way {
      case .stateful: .stateful
      case .explicit, .explicitFresh: .explicit
      case .stateless: .stateless
      }
    let engine = try DecoderEngine(
      weights: weights, mode: mode, reusesBuffers: way != .explicitFresh)
    let steps = way == .stateless ? Self.statelessSteps : Self.steps
    try engine.makeState(for: .conversation)
    let start = context - steps
    // In one call: a stateless engine would begin again at each.
    try engine.predict(
      Chunk(ids: (0..<start).map { Token($0 * 7 % 4000) }, start: 0, purpose: .turn))
    let before = (engine.decoder.projectionNs, engine.decoder.attentionNs)
    let timesNs = try (0..<steps).map { step in
      let beganNs = chost_thread_cpu_ns()
      try engine.predict(Chunk(ids: [3], start: start + step, purpose: .decode))
      return chost_thread_cpu_ns() - beganNs
    }
    let count = Double(steps)
    return Measured(
      stepNs: median(timesNs),
      projectionNs: Double(engine.decoder.projectionNs - before.0) / count,
      attentionNs: Double(engine.decoder.attentionNs - before.1) / count)
  }
}
