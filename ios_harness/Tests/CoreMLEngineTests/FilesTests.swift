// SPDX-License-Identifier: Apache-2.0

@testable import CoreMLEngine
import Foundation
import StreamingLM
import Testing

@Suite struct FilesTests {
  @Test(arguments: [StandInKit.Layout.separate, .multifunction, .chunked])
  func aKitIsCompiledOnceAndRuns(_ layout: StandInKit.Layout) async throws {
    let kit = try StandInKit(layout)
    let cache = kit.folder.appendingPathComponent("Library/Caches/models")
    let first = try await CoreMLFiles.compiled(kit: kit.folder, cache: cache)
    let second = try await CoreMLFiles.compiled(kit: kit.folder, cache: cache)
    #expect(first.isCold && !second.isCold)
    #expect(first.stages == second.stages && first.stages.count == kit.files.count)
    let engine = try CoreMLEngine(files: second.stages)
    let tokens = try engine.generate(4, after: [1, 2, 3])
    #expect(try tokens == StandInKit.reference().generate(4, after: [1, 2, 3]))
  }

  @Test(arguments: [
    #"{"packages":[]}"#, "{}", "no json",
    #"{"packages":[{"path":"../../x","digest":"a","functions":["decode"],"chunk":1}]}"#,
    #"{"packages":[{"path":"x","digest":"../a","functions":["decode"],"chunk":1}]}"#,
    #"{"packages":[{"path":".","digest":"a","functions":["decode"],"chunk":1}]}"#,
    #"{"packages":[{"path":"decode-1.mlpackage","digest":"a","functions":["decode"],"chunk":2}]}"#,
    #"{"packages":[{"path":"decode-1.mlpackage","digest":"a","functions":["train"],"chunk":1}]}"#,
  ])
  func aKitThatIsNoneIsRefused(_ text: String) async throws {
    let kit = try StandInKit()
    try Data(text.utf8).write(to: kit.folder.appendingPathComponent("kit.json"))
    let cache = kit.folder.appendingPathComponent("cache")
    await #expect(throws: CoreMLError.self) {
      try await CoreMLFiles.compiled(kit: kit.folder, cache: cache)
    }
  }

  @Test func aPackageThatDoesNotCompileSaysSo() async throws {
    let kit = try StandInKit()
    try FileManager.default.removeItem(
      at: kit.folder.appendingPathComponent("decode-1.mlpackage/standin.json"))
    let cache = kit.folder.appendingPathComponent("cache")
    let error = await #expect(throws: CoreMLError.self) {
      try await CoreMLFiles.compiled(kit: kit.folder, cache: cache)
    }
    #expect(error?.code == "compile")
  }

  @Test func thePlanIsCountedByKindAndProcessor() async throws {
    let kit = try StandInKit(.multifunction)
    let function = try #require(kit.files[0].decode)
    let counts = try await PlacementCount.counts(of: function, units: .cpuAndNeuralEngine)
    #expect(
      counts == [
        PlacementCount(group: .weights, device: .none, count: 2),
        PlacementCount(group: .products, device: .neuralEngine, count: 5),
        PlacementCount(group: .state, device: .neuralEngine, count: 6),
        PlacementCount(group: .other, device: .cpu, count: 1),
        PlacementCount(group: .other, device: .neuralEngine, count: 4),
      ])
    let onGPU = try await PlacementCount.counts(of: function, units: .cpuAndGPU)
    #expect(Set(onGPU.map(\.device)) == [.gpu, .none])
  }

  @Test func theLadderMeasuresEachChoiceAndGoesOnAfterAFailure() async throws {
    let kit = try StandInKit(faults: #""refused_units":[3]"#)
    var readings = 0
    let rungs = await ComputeLadder.climb(kit.files, steps: 3) {
      readings += 100
      return readings
    }
    #expect(rungs.map(\.units) == [.all, .cpuAndNeuralEngine, .cpuAndGPU, .cpuOnly])
    #expect(rungs.map { $0.failure?.code } == [nil, "neural_engine", nil, nil])
    for rung in rungs where rung.failure == nil {
      #expect(rung.decodeMs > 0 && rung.prefillMs > 0 && rung.loadMs > 0)
      #expect(rung.footprintBytes == 100)
      #expect(!rung.placement.isEmpty)
    }
  }
}
