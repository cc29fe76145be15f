// SPDX-License-Identifier: Apache-2.0

import StreamingLM
import Testing

@Suite struct SamplerTests {
  private func picks(
    _ logits: [Float], _ draw: SamplingSetting.Draw?, count: Int = 1
  ) throws(EngineError) -> [Token] {
    var sampler = Sampler(SamplingSetting(draw: draw))
    var tokens: [Token] = []
    for _ in 0..<count {
      let result = logits.withUnsafeBufferPointer { logits in
        Result { () throws(EngineError) in try sampler.pick(logits) }
      }
      tokens.append(try result.get())
    }
    return tokens
  }

  @Test func greedyTakesTheLowestIDAmongTheBest() throws {
    #expect(try picks([0, 3, 1, 3], nil) == [1])
  }

  @Test(arguments: [Float.nan, .infinity, -.infinity])
  func logitsThatAreNotFiniteAreRefused(bad: Float) {
    let draw = SamplingSetting.Draw(temperature: 1, seed: 1)
    #expect(throws: EngineError.nonFinite) { try picks([1, bad, 2], nil) }
    #expect(throws: EngineError.nonFinite) { try picks([1, 2, bad], draw) }
  }

  @Test func oneSeedGivesOneText() throws {
    let logits = (0..<100).map { Float($0 % 7) }
    let draw = SamplingSetting.Draw(temperature: 1.5, topK: 40, topP: 0.9, seed: 7)
    let other = SamplingSetting.Draw(temperature: 1.5, topK: 40, topP: 0.9, seed: 8)
    #expect(try picks(logits, draw, count: 50) == picks(logits, draw, count: 50))
    #expect(try picks(logits, draw, count: 50) != picks(logits, other, count: 50))
  }

  @Test func onlyTheBestKAreDrawn() throws {
    let draw = SamplingSetting.Draw(temperature: 100, topK: 2, seed: 3)
    #expect(Set(try picks([5, 1, 4, 2], draw, count: 200)) == [0, 2])
  }

  @Test func onlyTheNucleusIsDrawn() throws {
    // Of e^3, e^2 and twice e^0 the best two are 0.93 of the whole.
    let draw = SamplingSetting.Draw(temperature: 1, topP: 0.9, seed: 3)
    #expect(Set(try picks([0, 3, 2, 0], draw, count: 200)) == [1, 2])
  }

  @Test func sharesFollowTheTemperature() throws {
    let draw = SamplingSetting.Draw(temperature: 2, seed: 11)
    let first = try picks([2, 0], draw, count: 4000).count { $0 == 0 }
    // e^1 : 1, within four standard deviations.
    #expect((2813...3035).contains(first))
  }

  @Test func aSingleLogitIsDrawnWhateverTheBounds() throws {
    #expect(try picks([0], .init(temperature: 0.1, topK: 1, topP: 1, seed: 0)) == [0])
  }

  @Test func theGeneratorIsSplitMix64() {
    var generator = SplitMix64(seed: 0)
    #expect(generator.next() == 0xE220_A839_7B1D_CDAF)
    #expect(generator.next() == 0x6E78_9E6A_A1B9_65F4)
  }
}

@Suite struct OutputWatchTests {
  private func findings(_ tokens: some Sequence<Token>) -> [OutputWatch.Finding] {
    var watch = OutputWatch()
    return tokens.compactMap { watch.observe($0) }
  }

  @Test func oneIDWithoutEndIsFoundOnce() {
    #expect(findings([Token](repeating: 5, count: 63)) == [])
    #expect(findings([1, 2] + [Token](repeating: 5, count: 300)) == [.constant(5, count: 64)])
  }

  @Test(arguments: [2, 3, 16])
  func aShortCycleIsFound(period: Int) {
    let tokens = (0..<400).map { Token($0 % period) }
    #expect(findings(tokens) == [.repetition(period: period, count: 256)])
  }

  @Test func aLongCycleAndALanguageAreNotFound() {
    var generator = SplitMix64(seed: 1)
    #expect(findings((0..<1000).map { Token($0 % 17) }) == [])
    #expect(findings((0..<10_000).map { _ in Token(generator.next() % 50) }) == [])
  }
}

@Suite struct ParityTests {
  @Test func equalLogitsAgreeInEverything() {
    let parity = Parity(used: [1, 5, 2, 4, 3, 0] as [Float], audited: [1, 5, 2, 4, 3, 0])
    #expect(parity.maxAbs == 0 && parity.isTop1Equal && parity.isTop3Contained)
    #expect(parity.top5Overlap == 1)
  }

  @Test func aSwapOfTheFirstTwoIsContainedInThree() {
    let parity = Parity(used: [9, 8, 0, 0, 0, 0, 0] as [Float], audited: [8, 9, 0, 0, 0, 0, 0])
    #expect(parity.maxAbs == 1 && !parity.isTop1Equal && parity.isTop3Contained)
  }

  @Test func otherLogitsShareLittle() {
    let parity = Parity(
      used: [9, 8, 7, 6, 5, 0, 0, 0, 0, 0] as [Float], audited: [0, 0, 0, 0, 5, 9, 8, 7, 6, 0])
    #expect(!parity.isTop3Contained && parity.top5Overlap == 0.2)
  }

  @Test func aCandidateThatOneSideLacksCountsWithItsLogit() {
    let used = [Candidate(token: 4, logit: 8), Candidate(token: 5, logit: 7)]
    let audited = [Candidate(token: 4, logit: 8), Candidate(token: 9, logit: 7)]
    let parity = Parity(used: used, audited: audited)
    #expect(parity.maxAbs == 7 && parity.isTop1Equal && parity.top5Overlap == 0.5)
  }
}
