// SPDX-License-Identifier: Apache-2.0

import CoreMLEngine
import Foundation
import HarnessCore
import ReferenceEngine
import StreamingLM

/// A folder of the model kit whose packages the stand-in for Core ML runs.
final class StandInKit {
  enum Layout: String, CaseIterable, Sendable {
    case separate, multifunction, explicit, stateless, chunked, joint
  }

  let folder: URL
  let files: [CoreMLStageFiles]

  /// Writes the packages; `faults` are members of the stand-in's `faults`, JSON without braces.
  init(_ layout: Layout = .separate, faults: String = "") throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("kit-\(UUID().uuidString)")
    let chunks = layout == .chunked ? 2 : 1
    var files: [CoreMLStageFiles] = []
    var packages: [String] = []
    for chunk in 1...chunks {
      var stage: [String: CoreMLFunction] = [:]
      for functions in Self.packages(layout) {
        let name = "\(functions.count > 1 ? "model" : functions[0])-\(chunk).mlpackage"
        try Self.write(
          folder.appendingPathComponent(name), layout, functions, chunk, chunks, faults)
        for function in functions {
          stage[function] = CoreMLFunction(
            url: folder.appendingPathComponent(name), name: functions.count > 1 ? function : nil)
        }
        packages.append(
          #"{"path":"\#(name)","digest":"\#(name)","functions":\#(functions),"chunk":\#(chunk),"bytes":9}"#
        )
      }
      files.append(CoreMLStageFiles(decode: stage["decode"], prefill: stage["prefill"]))
    }
    self.files = files
    try Self.write(
      #"{"packages":[\#(packages.joined(separator: ","))],"recipe":\#(Self.recipe)}"#,
      to: folder.appendingPathComponent("kit.json"))
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  func engine(
    _ setting: CoreMLEngine.Setting = .init(),
    willDo: @escaping (CoreMLAct, String) -> Void = { _, _ in }
  ) throws -> CoreMLEngine {
    try CoreMLEngine(files: files, setting: setting, willDo: willDo)
  }

  /// What every layout must compute.
  static func reference() throws -> DecoderEngine { try DecoderEngine(weights: try weights.get()) }

  private static let fixtures = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "ReferenceEngineTests/Fixtures/mini-lut4/weights.safetensors")
  private static let weights = Result { try DecoderWeights(path: fixtures.path) }

  private static let recipe = """
    {"layers":2,"width":64,"heads":2,"kv_heads":1,"head_dim":32,"inner":96,"vocab":256,"length":160,\
    "weights":"lut4","chunk":16,"epsilon":1e-05,"states":"pair"}
    """

  private static func packages(_ layout: Layout) -> [[String]] {
    switch layout {
    case .separate, .explicit, .chunked, .joint: [["decode"], ["prefill"]]
    case .multifunction: [["decode", "prefill"]]
    case .stateless: [["prefill"]]
    }
  }

  private static func write(
    _ package: URL, _ layout: Layout, _ functions: [String], _ chunk: Int, _ chunks: Int,
    _ faults: String
  ) throws {
    try FileManager.default.createDirectory(at: package, withIntermediateDirectories: true)
    let kind = [.chunked, .joint].contains(layout) ? "separate" : layout.rawValue
    let layers = 2 / chunks
    try write(
      """
      {"layout":"\(kind)","functions":\(functions),"chunk":{"number":\(chunk),"of":\(chunks),\
      "first_layer":\((chunk - 1) * layers),"layer_count":\(layers)},"faults":{\(faults)}}
      """, to: package.appendingPathComponent("standin.json"))
    let weights = package.appendingPathComponent("weights.safetensors")
    if layout == .joint {
      try jointWeights().write(to: weights)
    } else {
      try FileManager.default.createSymbolicLink(at: weights, withDestinationURL: fixtures)
    }
  }

  /// The same weights with a recipe that asks for one joint state.
  private static func jointWeights() throws -> Data {
    var data = try Data(contentsOf: fixtures)
    let (old, new) = (Data(#"states\": \"pair\""#.utf8), Data(#"states\":\"joint\""#.utf8))
    if let place = data.range(of: old) { data.replaceSubrange(place, with: new) }
    return data
  }

  private static func write(_ text: String, to file: URL) throws {
    try Data(text.utf8).write(to: file)
  }
}

/// Runs something that waits for asynchronous work, as a load does, on a thread of its own: on the threads of Swift's
/// pool, of which there are as many as cores, the work that it waits for would never run.
func onOwnThread<Value: Sendable>(
  _ work: @escaping @Sendable () throws -> Value
) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    do {
      try Worker.start { continuation.resume(with: Result { try work() }) }
    } catch { continuation.resume(throwing: error) }
  }
}

extension InferenceEngine {
  /// Feeds a prompt and returns the tokens that follow.
  func generate(_ count: Int, after prompt: [Token]) throws -> [Token] {
    try makeState(for: .conversation)
    defer { releaseState(for: .end) }
    try predict(Chunk(ids: prompt, start: 0, purpose: .turn))
    return try (0..<count).map { step in
      let token = try sample()
      try predict(Chunk(ids: [token], start: prompt.count + step, purpose: .decode))
      return token
    }
  }
}
