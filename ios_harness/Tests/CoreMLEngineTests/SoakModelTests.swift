// SPDX-License-Identifier: Apache-2.0

@testable import CoreMLEngine
import Foundation
import HarnessCore
import ReferenceEngine
@testable import SoakRunner
import StreamingLM
import Testing

@Suite struct SoakModelTests {
  private let kit: StandInKit
  private var cache: URL {
    kit.folder.appendingPathComponent("../cache-\(kit.folder.lastPathComponent)")
  }

  init() throws { kit = try StandInKit() }

  private static func order(_ crumbs: Crumbs = Crumbs()) -> LoadOrder {
    LoadOrder(
      memoryScale: 1, speed: EngineSpeed(decodeTokensPerS: 1, prefillTokensPerS: 1),
      speedShare: { 1 }, nonce: 0, endEvery: 0, sampling: .greedy, wasLoaded: false, faults: [],
      clock: LaunchClock(), willDo: { about, _ in crumbs.words.append(about) })
  }

  @Test func aKitIsReadByDigestAndLoads() async throws {
    let (folder, cache) = (kit.folder, cache)
    try await onOwnThread { try Self.readAndLoad(folder, cache) }
  }

  private static func readAndLoad(_ folder: URL, _ cache: URL) throws {
    let digest = try KitFolder.digest(folder)
    let read = CoreMLSoakModel.reader(cache: cache)
    defer { try? FileManager.default.removeItem(at: cache) }
    #expect(try read(folder.path, String(repeating: "0", count: 64)) == nil)
    let model = try #require(try read(folder.path, digest))
    #expect(model.facts.engine == "coreml" && model.facts.quantization == .int4)
    #expect(model.facts.capacity == 160 && model.facts.chunkWidths == [16])
    #expect(model.facts.weightsBytes == 18)
    let crumbs = Crumbs()
    let loaded = try model.load(order(crumbs))
    #expect(loaded.load.isCold && loaded.load.computeUnits == "all")
    #expect(loaded.load.plan.contains { $0.device == "neural_engine" })
    #expect(crumbs.words == ["load", "predict"])
    let tokens = try loaded.engine.generate(3, after: [1, 2])
    #expect(try tokens == StandInKit.reference().generate(3, after: [1, 2]))
    #expect(try !model.load(order()).load.isCold)
  }

  @Test func aKitWhoseCacheTheHostWouldWriteIsRefusedByItsLayout() throws {
    let file = kit.folder.appendingPathComponent("kit.json")
    let text = try String(contentsOf: file, encoding: .utf8)
    try Data(("{" + #""layout":"host-state","# + text.dropFirst()).utf8).write(to: file)
    let read = CoreMLSoakModel.reader(cache: cache)
    let error = #expect(throws: CoreMLError.self) {
      try read(kit.folder.path, KitFolder.digest(kit.folder))
    }
    #expect(error?.code == "files")
    #expect(error?.description.contains("layout host-state") == true)
    #expect(error?.description.contains("--layout separate or multifunction") == true)
  }

  @Test func aChangedByteChangesTheDigest() throws {
    let before = try KitFolder.digest(kit.folder)
    let file = kit.folder.appendingPathComponent("decode-1.mlpackage/standin.json")
    try Data("{}".utf8).write(to: file)
    #expect(try KitFolder.digest(kit.folder) != before)
  }

  /// The host computed it: sha256 of "a/b\0002\000hi" and "c\0000\000".
  @Test func theDigestIsTheHosts() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(
      at: folder.appendingPathComponent("a"), withIntermediateDirectories: true)
    try Data("hi".utf8).write(to: folder.appendingPathComponent("a/b"))
    try Data().write(to: folder.appendingPathComponent("c"))
    #expect(
      try KitFolder.digest(folder)
        == SHA256.hexadecimal(of: Array("a/b\u{0}2\u{0}hic\u{0}0\u{0}".utf8)))
  }

  @Test func theMachineLoadsAgainWhenTheLedgerAsks() throws {
    let kit = try StandInKit(faults: #""ignores_backings":true"#)
    let engine = try kit.engine(.init(ledger: SurfaceLedger(ceiling: 10)))
    let machine = TurnMachine(
      engine: engine, plan: try ContextPlan(budget: 100, pin: 0, endIDs: [], chunk: 16),
      signals: TurnSignals(), clock: LaunchClock())
    var (loads, tokens) = (0, [Token]())
    try machine.run(prompt: [1, 2], limit: 30) { event in
      if case .loaded = event { loads += 1 }
      if case .sampled(let sample) = event { tokens.append(sample.token) }
    }
    #expect(loads >= 2 && engine.reloads == loads)
    #expect(try tokens == StandInKit.reference().generate(30, after: [1, 2]))
  }

  @Test func anAuditUsesAStateOfItsOwn() throws {
    let engine = try kit.engine()
    try engine.makeState(for: .conversation)
    try engine.predict(Chunk(ids: [5, 9, 2], start: 0, purpose: .turn))
    let token = try engine.sample()
    try engine.beginAudit()
    try engine.predictAudit(Chunk(ids: [5, 9], start: 0, purpose: .audit))
    #expect(throws: EngineError.state(expected: "an audit of 3 rows")) {
      try engine.compareAudit()
    }
    try engine.predictAudit(Chunk(ids: [2], start: 2, purpose: .audit))
    let parity = try engine.compareAudit()
    engine.endAudit()
    #expect(parity.maxAbs < 0.02 && parity.isTop3Contained)
    #expect(try engine.sample() == token)
  }

  private final class Crumbs { var words: [String] = [] }
}
