// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine
import StreamingLM
import Testing

@Suite struct GoldenTests {
  /// Keys and values are halves here and floats in the goldens, whose logits have a deviation of 2.6.
  private static let largestError = 0.02

  @Test(arguments: [DecoderShape.Storage.lut4, .int8])
  func logitsAreThoseOfTheModelKit(_ storage: DecoderShape.Storage) throws {
    let fixture = try ModelFixture(storage)
    let engine = try DecoderEngine(weights: fixture.weights)
    var (positions, equal, largestError) = (0, 0, 0.0)
    for prompt in try fixture.goldens() {
      for (row, logits) in try engine.logitsOfEach(prompt.ids).enumerated() {
        let best = logits.indices.sorted { logits[$0] > logits[$1] }.prefix(3).map(Token.init)
        positions += 1
        if best[0] == prompt.topIDs[row][0] { equal += 1 }
        #expect(best.contains(prompt.topIDs[row][0]))
        for (id, golden) in zip(prompt.topIDs[row], prompt.topLogits[row]) {
          largestError = max(largestError, abs(Double(logits[Int(id)]) - golden))
        }
      }
    }
    #expect(positions == 200)
    #expect(Double(equal) >= 0.99 * Double(positions), "\(equal) of \(positions)")
    #expect(largestError < Self.largestError)
  }

  @Test func aChunkGivesWhatSingleTokensGive() throws {
    let fixture = try ModelFixture()
    let ids = try fixture.goldens()[1].ids
    let engine = try DecoderEngine(weights: fixture.weights)
    let single = try engine.logitsOfEach(ids)
    try engine.makeState(for: .conversation)
    try engine.predict(Chunk(ids: Array(ids[..<37]), start: 0, purpose: .turn))
    try engine.predict(Chunk(ids: Array(ids[37...]), start: 37, purpose: .turn))
    for (chunked, alone) in zip(engine.logits, single[ids.count - 1]) {
      #expect(abs(chunked - alone) < 1e-4)
    }
  }

  @Test func whereTheCacheIsKeptDoesNotChangeTheTokens() throws {
    let weights = try ModelFixture().weights
    let runs = try DecoderEngine.CacheMode.allCases.map { mode in
      try generate(30, DecoderEngine(weights: weights, mode: mode))
    }
    #expect(runs[0] == runs[1] && runs[1] == runs[2])
    #expect(Set(runs[0]).count > 5)
  }

  @Test func freshBuffersForFeaturesGiveTheSameTokens() throws {
    let weights = try ModelFixture().weights
    let reused = try DecoderEngine(weights: weights, mode: .explicit, reusesBuffers: true)
    let fresh = try DecoderEngine(weights: weights, mode: .explicit, reusesBuffers: false)
    #expect(try generate(12, reused) == generate(12, fresh))
  }

  private func generate(_ count: Int, _ engine: DecoderEngine) throws -> [Token] {
    try engine.makeState(for: .conversation)
    try engine.predict(Chunk(ids: [1, 77, 200, 3], start: 0, purpose: .turn))
    return try (0..<count).map { step in
      let token = try engine.sample()
      try engine.predict(Chunk(ids: [token], start: 4 + step, purpose: .decode))
      return token
    }
  }
}
