// SPDX-License-Identifier: Apache-2.0

import Foundation
import HarnessCore
import ReferenceEngine

/// Which processors a model prefers.
public enum MLComputeUnits: Int, Sendable {
  /// The CPU alone.
  case cpuOnly = 0
  /// CPU and GPU.
  case cpuAndGPU = 1
  /// Whatever there is.
  case all = 2
  /// CPU and Neural Engine.
  case cpuAndNeuralEngine = 3
}

/// How a model is loaded.
public class MLModelConfiguration {
  /// Which processors it prefers.
  public var computeUnits = MLComputeUnits.all
  /// A function of a model that has several.
  public var functionName: String?
  /// Shown by Instruments.
  public var modelDisplayName: String?

  /// The defaults.
  public init() {}
}

/// A loaded model.
public class MLModel {
  /// Inputs, outputs and states.
  public let modelDescription: MLModelDescription
  private let package: StandInPackage
  private let function: String
  private let decoder: Decoder
  private var predictions = 0
  private var surfaces = 0

  /// Loads a compiled model.
  public init(contentsOf url: URL, configuration: MLModelConfiguration) throws {
    package = try StandInPackage(url)
    if let message = package.faults.loadFails { throw Self.error(message) }
    if package.faults.refusedUnits.contains(configuration.computeUnits.rawValue) {
      throw Self.error("ANECCompile() FAILED 11")
    }
    function = configuration.functionName ?? package.functions.first ?? "decode"
    guard package.functions.contains(function) else {
      throw Self.error("the model has no function named \(function)")
    }
    modelDescription = package.description(of: function)
    decoder = try Decoder(
      weights: package.weights, widestBlock: package.width(of: function))
  }

  /// Compiles a package into a temporary folder.
  public class func compileModel(at modelURL: URL) async throws -> URL {
    guard FileManager.default.fileExists(atPath: modelURL.path + "/standin.json") else {
      throw error("\(modelURL.path) is no model")
    }
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("\(UUID().uuidString).mlmodelc")
    try FileManager.default.copyItem(at: modelURL, to: folder)
    return folder
  }

  /// Makes a state; an empty one for a model without states.
  public func makeState() -> MLState {
    MLState(
      shapes: modelDescription.stateDescriptionsByName.compactMapValues {
        $0.stateConstraint?.bufferShape
      }, maker: ObjectIdentifier(self))
  }

  /// Predicts and advances a state.
  public func prediction(
    from inputFeatures: any MLFeatureProvider, using state: MLState, options: MLPredictionOptions
  ) throws -> any MLFeatureProvider {
    guard state.lock.try() else { throw Self.error("overlapping predictions on one state") }
    defer { state.lock.unlock() }
    return try predict(inputFeatures, state: try served(state), options)
  }

  /// Predicts without a state.
  public func prediction(
    from input: any MLFeatureProvider, options: MLPredictionOptions
  ) throws -> any MLFeatureProvider {
    try predict(input, state: nil, options)
  }

  static func error(_ message: String) -> NSError {
    NSError(
      domain: "com.apple.CoreML", code: 0, userInfo: [NSLocalizedDescriptionKey: message])
  }

  private func served(_ state: MLState) throws -> MLState {
    if state.maker == ObjectIdentifier(self) { return state }
    switch package.faults.foreignState {
    case .refuse: throw Self.error("the state was not made by this model")
    case .serve: return state
    case .ignore: return makeState()
    }
  }

  private func predict(
    _ input: any MLFeatureProvider, state: MLState?, _ options: MLPredictionOptions
  ) throws -> any MLFeatureProvider {
    predictions += 1
    if let message = package.faults.predictFails, predictions >= package.faults.failsAt {
      throw Self.error(message)
    }
    let backed = package.faults.ignoresBackings ? 0 : options.outputBackings.count
    try takeSurfaces(for: modelDescription.outputDescriptionsByName.count - backed)
    let step = try StandInStep(
      package: package, description: modelDescription, input: input, state: state,
      options: options)
    if predictions == package.faults.poisonsAt { step.poison() }
    return try step.run(decoder)
  }

  /// What a prediction leaves for the pool, and what is lost until the model is loaded again.
  private func takeSurfaces(for outputs: Int) throws {
    surfaces += outputs + package.faults.leakedSurfaces
    SurfacePool.current?.add { [weak self] in self?.surfaces -= outputs }
    if surfaces > package.faults.surfaceLimit {
      throw Self.error("Failed to allocate E5 buffer object: no memory IOSurface object")
    }
  }
}
