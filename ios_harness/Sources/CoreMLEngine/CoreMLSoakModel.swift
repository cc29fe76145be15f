// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Dispatch
import Foundation
import SoakRunner
import StreamingLM

/// A decoder behind Core ML as a soak loads it: a folder of the model kit, compiled on the phone.
public struct CoreMLSoakModel: SoakModel {
  /// What the kit says of the model.
  public let facts: ModelFacts
  private let kit: URL
  private let cache: URL

  /// A reader for a launch, under the kind `coreml`.
  ///
  /// - Parameter cache: Folder for compiled models, in `Library/Caches`.
  /// - Returns: Reads a kit's folder and checks its digest.
  public static func reader(cache: URL) -> ModelReader {
    { folder, digest in
      let url = URL(fileURLWithPath: folder, isDirectory: true)
      guard try KitFolder.digest(url) == digest else { return nil }
      return try CoreMLSoakModel(KitFolder(url), cache)
    }
  }

  private init(_ kit: KitFolder, _ cache: URL) throws {
    facts = try ModelFacts(engine: "coreml", shape: kit.shape, weightsBytes: kit.weightsBytes)
    self.kit = kit.url
    self.cache = cache
  }

  /// Every way to pick from logits.
  public func supports(_ sampling: SamplingSetting) -> Bool { true }

  /// Compiles what is not compiled yet, reads the compute plan and loads.
  ///
  /// - Parameter order: What the scenario asks for; set speed and scripted faults mean nothing to a real model.
  /// - Returns: The engine, owned by the calling thread.
  /// - Throws: `CoreMLError`.
  public func load(_ order: LoadOrder) throws -> LoadedModel {
    let (kit, cache) = (kit, cache)
    let (stages, isCold, placement) = try Blocking.wait {
      let (stages, isCold) = try await CoreMLFiles.compiled(kit: kit, cache: cache)
      return (stages, isCold, try await Self.placement(of: stages))
    }
    let engine = try CoreMLEngine(
      files: stages, setting: .init(sampling: order.sampling, placement: placement),
      // A reload is a load to the host.
      willDo: { act, detail in
        order.willDo(act == .reload ? CoreMLAct.load.rawValue : act.rawValue, detail)
      })
    return LoadedModel(engine: engine, load: engine.modelLoad(isCold: isCold))
  }

  private static func placement(
    of stages: [CoreMLStageFiles]
  ) async throws -> [ModelLoad.Placement] {
    var placements: [ModelLoad.Placement] = []
    for function in stages.flatMap({ [$0.decode, $0.prefill] }).compactMap(\.self) {
      placements += try await PlacementCount.counts(of: function, units: .all).map { count in
        ModelLoad.Placement(
          group: count.group.rawValue, device: count.device.rawValue,
          operationCount: count.count)
      }
    }
    return placements
  }
}

/// Waits for asynchronous work on a thread of our own, which is none of Swift's pool and may block.
enum Blocking {
  /// Unchecked: written before the signal, read after the wait.
  private final class Box<Value: Sendable>: @unchecked Sendable {
    var result: Result<Value, any Error>?
  }

  static func wait<Value: Sendable>(
    _ work: @escaping @Sendable () async throws -> Value
  ) throws -> Value {
    let box = Box<Value>()
    let done = DispatchSemaphore(value: 0)
    Task.detached {
      do { box.result = .success(try await work()) } catch { box.result = .failure(error) }
      done.signal()
    }
    done.wait()
    guard let result = box.result else { throw CoreMLError.load("the load gave no result") }
    return try result.get()
  }
}
