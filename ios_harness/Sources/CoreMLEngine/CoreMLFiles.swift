// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation
import HarnessCore

/// One function of one compiled model.
public struct CoreMLFunction: Sendable, Equatable {
  /// The compiled model, `.mlmodelc`.
  public let url: URL
  /// A function of a model that has several; nil for its only one.
  public let name: String?

  /// - Parameters:
  ///   - url: The compiled model.
  ///   - name: A function of a model that has several.
  public init(url: URL, name: String? = nil) {
    self.url = url
    self.name = name
  }
}

/// The compiled models of one chunk of layers.
public struct CoreMLStageFiles: Sendable, Equatable {
  /// One token at a time; nil for a model that has only wide predictions.
  public let decode: CoreMLFunction?
  /// A chunk of tokens at a time.
  public let prefill: CoreMLFunction?

  /// - Parameters:
  ///   - decode: One token at a time.
  ///   - prefill: A chunk of tokens at a time.
  public init(decode: CoreMLFunction?, prefill: CoreMLFunction?) {
    self.decode = decode
    self.prefill = prefill
  }
}

/// A folder of the model kit, compiled on the phone: `kit.json` names the packages, their functions and chunks.
public enum CoreMLFiles {
  private static let largestFileBytes = 1 << 20

  /// Compiles the packages of a kit, each once: the compiled models are kept by digest.
  ///
  /// Compiling takes seconds to minutes on a phone; call it away from the main actor.
  ///
  /// - Parameters:
  ///   - kit: Folder with `kit.json`.
  ///   - cache: Folder for compiled models, in `Library/Caches`; made when missing.
  /// - Returns: Stages in the order of the layers, and whether anything had to be compiled.
  /// - Throws: `CoreMLError`.
  public static func compiled(
    kit: URL, cache: URL
  ) async throws -> (stages: [CoreMLStageFiles], isCold: Bool) {
    let packages = try packages(of: kit)
    var urls: [URL] = []
    var isCold = false
    for package in packages {
      let kept = cache.appendingPathComponent(
        "\(package.digest).mlmodelc", isDirectory: true)
      if !FileManager.default.fileExists(atPath: kept.path) {
        isCold = true
        try await compile(kit.appendingPathComponent(package.path), to: kept)
      }
      urls.append(kept)
    }
    return (try stages(packages, urls), isCold)
  }

  private static func compile(_ package: URL, to kept: URL) async throws {
    do {
      let compiled = try await MLModel.compileModel(at: package)
      let manager = FileManager.default
      try manager.createDirectory(
        at: kept.deletingLastPathComponent(), withIntermediateDirectories: true)
      // The compiler's folder is temporary: the system may empty it.
      try manager.moveItem(at: compiled, to: kept)
    } catch { throw CoreMLError.of(error) { .compile($0) } }
  }

  private struct Package {
    let path: String
    let digest: String
    let functions: [String]
    let chunk: Int
  }

  private static func packages(of kit: URL) throws -> [Package] {
    do {
      let bytes = try Files.read(
        kit.appendingPathComponent("kit.json").path, limitBytes: largestFileBytes)
      let fields = try JSONFields(try JSONReader.read(bytes), at: "kit")
      return try fields.objects("packages").map { entry in
        Package(
          path: try name(entry, "path"), digest: try name(entry, "digest"),
          functions: try entry.array("functions").compactMap(\.asString),
          chunk: try entry.integer("chunk", in: 1...1024))
      }
    } catch { throw CoreMLError.files("\(error)") }
  }

  /// A member that is the name of a file inside the kit: what a host pushes must not lead out of it.
  private static func name(_ entry: JSONFields, _ member: String) throws(JSONError) -> String {
    let text = try entry.string(member)
    if text.isEmpty || text.hasPrefix(".") || text.contains("/") {
      throw .field(path: entry.path(of: member), expected: "a name inside the kit")
    }
    return text
  }

  private static func stages(
    _ packages: [Package], _ urls: [URL]
  ) throws(CoreMLError) -> [CoreMLStageFiles] {
    let count = packages.map(\.chunk).max() ?? 0
    var stages: [CoreMLStageFiles] = []
    for chunk in stride(from: 1, through: count, by: 1) {
      let own = zip(packages, urls).filter { $0.0.chunk == chunk }
      let stage = CoreMLStageFiles(
        decode: function("decode", own), prefill: function("prefill", own))
      if stage.decode == nil, stage.prefill == nil {
        throw .files("kit.json has no decode and no prefill for chunk \(chunk)")
      }
      stages.append(stage)
    }
    if stages.isEmpty { throw .files("kit.json lists no packages") }
    return stages
  }

  private static func function(_ name: String, _ packages: [(Package, URL)]) -> CoreMLFunction? {
    guard let (package, url) = packages.first(where: { $0.0.functions.contains(name) }) else {
      return nil
    }
    return CoreMLFunction(url: url, name: package.functions.count > 1 ? name : nil)
  }
}
