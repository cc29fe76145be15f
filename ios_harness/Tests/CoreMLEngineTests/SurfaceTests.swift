// SPDX-License-Identifier: Apache-2.0

import CoreML
@testable import CoreMLEngine
import StreamingLM
import Testing

@Suite struct SurfaceTests {
  private let prompt: [Token] = [1, 2, 3]

  /// The stand-in must be able to fail, or the next tests prove nothing.
  @Test func predictionsWithoutAPoolExhaustTheProcess() throws {
    let kit = try StandInKit(.stateless, faults: #""surface_limit":10"#)
    let model = try CoreMLModel(kit.files, units: .all)
    let arrays = try StepArrays(width: 160, length: 160)
    arrays.fill(prompt[...], start: 0)
    let features = try #require(PlainFeatures(arrays))
    let function = try #require(model.stages[0].prefill)
    #expect(throws: (any Error).self) {
      for _ in 1...12 {
        _ = try function.model.prediction(from: features, options: MLPredictionOptions())
      }
    }
  }

  @Test(arguments: [StandInKit.Layout.separate, .explicit])
  func aPoolAndBackingsLeaveNothingBehind(_ layout: StandInKit.Layout) throws {
    let kit = try StandInKit(layout, faults: #""surface_limit":4"#)
    let engine = try kit.engine()
    _ = try engine.generate(40, after: prompt)
    #expect(engine.ledger.surfaces == 0)
  }

  @Test func outputsThatCoreMLPutsElsewhereAreReadAndCounted() throws {
    let kit = try StandInKit(faults: #""ignores_backings":true,"surface_limit":4"#)
    let engine = try kit.engine()
    let tokens = try engine.generate(20, after: prompt)
    #expect(try tokens == StandInKit.reference().generate(20, after: prompt))
    #expect(engine.ledger.surfaces == 21)
  }

  @Test func theModelIsLoadedAgainLongBeforeTheLimit() throws {
    let kit = try StandInKit(
      faults: #""ignores_backings":true,"leaked_surfaces":1,"surface_limit":60"#)
    let engine = try kit.engine(.init(ledger: SurfaceLedger(ceiling: 30)))
    for turn in 0..<6 {
      let tokens = try engine.generate(20, after: prompt)
      #expect(tokens.count == 20)
      #expect(engine.reloads == turn / 2)
      #expect(engine.wantsReload == (turn % 2 == 1))
    }
  }

  @Test func exhaustionAsksForAReloadWhichCuresIt() throws {
    let kit = try StandInKit(faults: #""leaked_surfaces":1,"surface_limit":20"#)
    let engine = try kit.engine()
    #expect(!engine.wantsReload)
    #expect(throws: EngineError.self) { try engine.generate(40, after: prompt) }
    #expect(engine.wantsReload)
    #expect(try engine.generate(10, after: prompt).count == 10)
    #expect(engine.reloads == 1 && !engine.wantsReload)
  }

  @Test func aStateOfTheOldModelIsNeverUsedAfterAReload() throws {
    let kit = try StandInKit(faults: #""ignores_backings":true"#)
    let engine = try kit.engine(.init(ledger: SurfaceLedger(ceiling: 5)))
    let expected = try StandInKit.reference().generate(6, after: prompt)
    #expect(try engine.generate(6, after: prompt) == expected)
    try engine.makeState(for: .reload)
    #expect(engine.reloads == 1)
    // The stand-in refuses states of another model; this one is the new model's.
    try engine.predict(Chunk(ids: prompt, start: 0, purpose: .reload))
    #expect(try engine.sample() == expected[0])
  }

  @Test func theLedgerIsDueAtItsCeilingAndBeforeTheKernels() {
    var ledger = SurfaceLedger()
    #expect(ledger.ceiling * 2 == 16_384)
    ledger.predicted(unbacked: ledger.ceiling - 1)
    #expect(!ledger.isDue)
    ledger.predicted(unbacked: 1)
    #expect(ledger.isDue)
    ledger.reloaded()
    #expect(!ledger.isDue && ledger.surfaces == 0)
  }
}

/// The features of a step, as a caller without the engine would give them.
private struct PlainFeatures: MLFeatureProvider {
  private let values: [String: MLFeatureValue]

  init?(_ arrays: StepArrays) {
    values = [
      "input_ids": MLFeatureValue(multiArray: arrays.ids),
      "position_ids": MLFeatureValue(multiArray: arrays.positions),
      "causal_mask": MLFeatureValue(multiArray: arrays.mask),
      "logit_index": MLFeatureValue(multiArray: arrays.row),
    ]
  }

  var featureNames: Set<String> { Set(values.keys) }

  func featureValue(for featureName: String) -> MLFeatureValue? { values[featureName] }
}
