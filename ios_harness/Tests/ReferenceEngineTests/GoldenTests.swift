// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM
import Testing

@Suite struct GoldenTests {
  /// Keys and values are halves here and floats in the goldens, whose logits have a deviation of 2.6.
  private static let largestError = 0.02

  @Test(arguments: [DecoderShape.Storage.lut4, .int8])
  func logitsAreThoseOfTheModelKit(_ storage: DecoderShape.Storage) throws {
    let fixture = try ModelFixture(storage)
    let check = try GoldenCheck(
      path: fixture.folder + "/goldens.json", DecoderEngine(weights: fixture.weights))
    #expect(check.isMet && check.positions == 200)
    #expect(check.largestError < Self.largestError)
  }

  @Test func goldensOfAnotherModelAreNotMet() throws {
    let engine = try DecoderEngine(weights: ModelFixture(.lut4).weights)
    let check = try GoldenCheck(path: ModelFixture.folder(.int8) + "/goldens.json", engine)
    #expect(!check.isMet && check.positions == 200)
    let nothing = ModelFixture.folder(.lut4) + "/missing.json"
    #expect(throws: SystemError.self) { try GoldenCheck(path: nothing, engine) }
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
