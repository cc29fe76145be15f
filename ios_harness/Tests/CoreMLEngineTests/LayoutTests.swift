// SPDX-License-Identifier: Apache-2.0

import CoreMLEngine
import HarnessCore
import StreamingLM
import Testing

/// Every way to package a decoder computes what the reference engine computes.
@Suite struct LayoutTests {
  /// Logits are halves here and floats there; one visible row too many makes a difference of 0.2 and more.
  private static let tolerance: Float = 0.02

  private func prompt(_ count: Int) -> [Token] {
    (0..<count).map { Token(($0 * 37 + 11) % 256) }
  }

  @Test(arguments: StandInKit.Layout.allCases)
  func logitsAreThoseOfTheReferenceEngine(_ layout: StandInKit.Layout) throws {
    let kit = try StandInKit(layout)
    let (engine, reference) = (try kit.engine(), try StandInKit.reference())
    try engine.makeState(for: .conversation)
    try reference.makeState(for: .conversation)
    for (start, ids) in [(0, prompt(21)), (21, [5]), (22, [250]), (23, prompt(16)), (39, [7])] {
      let chunk = Chunk(ids: ids, start: start, purpose: start == 0 ? .turn : .decode)
      try engine.predict(chunk)
      try reference.predict(chunk)
      let error = zip(engine.logits, reference.logits).map { abs($0 - $1) }.max() ?? 1
      #expect(error < Self.tolerance, "\(layout) at row \(start)")
    }
  }

  /// Chunks are 16 wide and the cache has 160 rows: at its end there is no room for padding.
  @Test(arguments: [1, 2, 15, 16, 17, 32, 33, 145, 158])
  func edgesOfChunksChangeNothing(_ count: Int) throws {
    let kit = try StandInKit()
    let tokens = try kit.engine().generate(2, after: prompt(count))
    #expect(try tokens == StandInKit.reference().generate(2, after: prompt(count)))
  }

  @Test func theLastRowOfTheCacheCanBeUsedAndNoMore() throws {
    let kit = try StandInKit()
    let engine = try kit.engine()
    try engine.makeState(for: .conversation)
    try engine.predict(Chunk(ids: prompt(160), start: 0, purpose: .turn))
    #expect(throws: EngineError.capacity(needed: 161, available: 160)) {
      try engine.predict(Chunk(ids: [1], start: 160, purpose: .decode))
    }
  }

  @Test(arguments: [StandInKit.Layout.separate, .explicit, .chunked])
  func theMachineKeepsTheContextAcrossTrimsAndEvictions(_ layout: StandInKit.Layout) throws {
    let kit = try StandInKit(layout)
    let signals = TurnSignals()
    let machine = TurnMachine(
      engine: try kit.engine(), plan: try ContextPlan(budget: 48, pin: 1, endIDs: [], chunk: 16),
      signals: signals, clock: LaunchClock())
    let reference = try StandInKit.reference()
    var (trims, evictions) = (0, 0)
    try machine.run(prompt: prompt(20), limit: 60) { event in
      switch event {
      case .trimming: trims += 1
      case .evicting: evictions += 1
      case .sampled(let sample):
        if sample.rows == 40, evictions == 0 { signals.warn(1) }
        try reference.makeState(for: .conversation)
        try reference.predict(Chunk(ids: machine.window.context, start: 0, purpose: .turn))
        #expect(try sample.token == reference.sample())
        reference.releaseState(for: .end)
      default: break
      }
    }
    #expect(trims >= 1 && evictions == 1)
  }

  @Test func stateBytesAreThoseOfTheDescription() throws {
    let bytes = 2 * 2 * 1 * 160 * 32 * 2
    for layout in [StandInKit.Layout.separate, .explicit, .chunked, .joint] {
      #expect(try StandInKit(layout).engine().stateBytes == bytes)
    }
    #expect(try StandInKit(.stateless).engine().stateBytes == 0)
  }

  @Test func widthsAreThoseTheModelOffers() throws {
    #expect(try StandInKit().engine().widths == [1, 16])
    #expect(try StandInKit(.stateless).engine().widths == [160])
  }
}
