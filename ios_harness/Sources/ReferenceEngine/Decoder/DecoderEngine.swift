// SPDX-License-Identifier: Apache-2.0

import StreamingLM

/// A real decoder on the CPU behind the pipeline's protocol.
public final class DecoderEngine: AuditingEngine {
  /// Where keys and values are between two predictions; the three differ in cost and in nothing else.
  public enum CacheMode: String, CaseIterable, Sendable {
    /// In a state that is advanced in place.
    case stateful
    /// In features: the whole cache goes in and comes out of each prediction.
    case explicit
    /// Nowhere: each prediction consumes everything again.
    case stateless
  }

  /// Where keys and values are between two predictions.
  public let mode: CacheMode
  /// The forward pass.
  public let decoder: Decoder

  private let shape: DecoderShape
  private var cache: DecoderCache?
  /// Output of an explicit prediction; the next one's input.
  private var spare: DecoderCache?
  private let reusesBuffers: Bool
  private var consumed: [Token] = []
  private var hasLogits = false
  private var sampler: Sampler
  private var audit: Audit?

  /// A second cache beside the one in use, and the logits of the last prediction in use.
  private struct Audit {
    let cache: DecoderCache
    let used: [Float]
    var rows = 0
  }

  /// - Parameters:
  ///   - weights: The weights, shared by as many engines as wanted.
  ///   - mode: Where keys and values are between two predictions.
  ///   - reusesBuffers: Whether explicit predictions write to the same two buffers, as output backings would.
  ///   - sampling: How a token is picked from the logits.
  /// - Throws: `EngineError.memory` when the system gives none.
  public init(
    weights: DecoderWeights, mode: CacheMode = .stateful, reusesBuffers: Bool = true,
    sampling: SamplingSetting = .greedy
  ) throws(EngineError) {
    sampler = Sampler(sampling)
    self.mode = mode
    self.reusesBuffers = reusesBuffers
    shape = weights.shape
    decoder = try Decoder(weights: weights)
  }

  /// Most rows of a state set.
  public var capacity: Int { shape.length }

  /// Bytes of one state set.
  public var stateBytes: Int { shape.cacheBytes }

  /// The logits of the last prediction, [vocabulary]; valid until the next one.
  public var logits: UnsafeBufferPointer<Float> { decoder.logits }

  /// Maps the cache at its full length and touches every page.
  public func makeState(for purpose: StatePurpose) throws(EngineError) {
    if cache != nil { throw .state(expected: "no state set") }
    cache = try DecoderCache(shape: shape)
    consumed = []
    hasLogits = false
  }

  /// Unmaps the cache.
  public func releaseState(for purpose: StatePurpose) {
    cache = nil
    spare = nil
    consumed = []
    hasLogits = false
  }

  /// Consumes the chunk; the logits are those of its last id.
  public func predict(_ chunk: Chunk) throws(EngineError) {
    guard let cache else { throw .state(expected: "a state set") }
    if chunk.end > capacity { throw .capacity(needed: chunk.end, available: capacity) }
    guard chunk.start == consumed.count else {
      throw .state(expected: "\(consumed.count) rows before the chunk")
    }
    consumed += chunk.ids
    switch mode {
    case .stateful: try feed(chunk.ids, at: chunk.start, cache)
    case .explicit: try feedThroughFeatures(chunk)
    case .stateless: try feed(consumed, at: 0, cache)
    }
    hasLogits = true
  }

  /// Picks a token from the logits (contract R11).
  public func sample() throws(EngineError) -> Token {
    guard hasLogits else { throw .state(expected: "a state set with rows") }
    return try sampler.pick(logits)
  }

  /// Finds the weights where they are: they are never written.
  public func reload() throws(EngineError) -> ModelLoad {
    ModelLoad(computeUnits: "cpu", plan: [], isCold: false)
  }

  /// Makes the audit's cache; the one in use is not touched.
  public func beginAudit() throws(EngineError) {
    guard cache != nil, hasLogits else { throw .state(expected: "a state set with rows") }
    audit = Audit(cache: try DecoderCache(shape: shape), used: Array(logits))
  }

  /// Feeds a chunk into the audit's cache.
  public func predictAudit(_ chunk: Chunk) throws(EngineError) {
    guard let audit else { throw .state(expected: "an audit") }
    try feed(chunk.ids, at: chunk.start, audit.cache)
    self.audit?.rows = chunk.end
  }

  /// Compares the logits of both caches, which must hold as many rows.
  public func compareAudit() throws(EngineError) -> Parity {
    guard let audit, audit.rows == consumed.count else {
      throw .state(expected: "an audit of \(consumed.count) rows")
    }
    return Parity(used: audit.used, audited: Array(logits))
  }

  /// Unmaps the audit's cache and restores the logits in use.
  public func endAudit() {
    if let audit { decoder.restore(logits: audit.used) }
    audit = nil
  }

  private func feed(_ ids: [Token], at start: Int, _ cache: DecoderCache) throws(EngineError) {
    var fed = 0
    while fed < ids.count {
      let count = min(decoder.widestBlock, ids.count - fed)
      try decoder.embed(ids[fed..<fed + count])
      decoder.run(
        layers: 0..<shape.layers, count: count, start: start + fed, cache: cache.view)
      fed += count
      if fed == ids.count { decoder.computeLogits(of: count - 1) }
    }
  }

  /// The cache comes in as one feature and leaves as another: a copy of all of it, and new memory unless it is reused.
  private func feedThroughFeatures(_ chunk: Chunk) throws(EngineError) {
    guard let input = cache else { return }
    let output: DecoderCache
    if let spare { output = spare } else { output = try DecoderCache(shape: shape) }
    output.copy(from: input)
    try feed(chunk.ids, at: chunk.start, output)
    cache = output
    spare = reusesBuffers ? input : nil
  }
}
