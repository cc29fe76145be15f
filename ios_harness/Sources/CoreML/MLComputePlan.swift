// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A processor.
public enum MLComputeDevice: Hashable, Sendable {
  /// The CPU.
  case cpu(MLCPUComputeDevice)
  /// The GPU.
  case gpu(MLGPUComputeDevice)
  /// The Neural Engine.
  case neuralEngine(MLNeuralEngineComputeDevice)
}

/// The CPU.
public struct MLCPUComputeDevice: Hashable, Sendable {}
/// The GPU.
public struct MLGPUComputeDevice: Hashable, Sendable {}
/// The Neural Engine.
public struct MLNeuralEngineComputeDevice: Hashable, Sendable {}

/// What a model is made of.
public enum MLModelStructure: Sendable {
  /// A program of operations.
  case program(Program)
  /// Something the stand-in does not know.
  case unsupported

  /// A program of operations.
  public struct Program: Sendable {
    /// Functions by name.
    public let functions: [String: Function]

    /// A function.
    public struct Function: Sendable {
      /// Its operations.
      public let block: Block
    }

    /// Operations in order.
    public struct Block: Sendable {
      /// In order.
      public let operations: [Operation]
    }

    /// One operation.
    public struct Operation: Sendable {
      /// `ios18.linear`
      public let operatorName: String
      /// Blocks inside.
      public let blocks: [Block]
    }
  }
}

/// Where the operations of a model would run.
public final class MLComputePlan {
  /// Where an operation would run.
  public struct DeviceUsage {
    /// Where it would run.
    public let preferred: MLComputeDevice
  }

  /// What the model is made of.
  public let modelStructure: MLModelStructure
  private let units: MLComputeUnits

  private init(_ structure: MLModelStructure, _ units: MLComputeUnits) {
    modelStructure = structure
    self.units = units
  }

  /// Plans a compiled model.
  public static func load(
    contentsOf url: URL, configuration: MLModelConfiguration
  ) async throws -> MLComputePlan {
    let package = try StandInPackage(url)
    let layer = [
      "constexpr_lut_to_dense", "linear", "ios18.read_state", "ios18.slice_update",
      "ios18.write_state", "matmul", "softmax", "silu",
    ]
    let names = ["gather"] + package.layers.flatMap { _ in layer } + ["linear"]
    let block = MLModelStructure.Program.Block(
      operations: names.map { MLModelStructure.Program.Operation(operatorName: $0, blocks: []) })
    let functions = package.functions.map { ($0, MLModelStructure.Program.Function(block: block)) }
    return MLComputePlan(
      .program(.init(functions: Dictionary(uniqueKeysWithValues: functions))),
      configuration.computeUnits)
  }

  /// Where an operation would run; nil for a constant.
  public func deviceUsage(
    for operation: MLModelStructure.Program.Operation
  ) -> DeviceUsage? {
    if operation.operatorName.hasPrefix("constexpr") { return nil }
    let staysOnCPU = operation.operatorName == "gather"
    switch units {
    case .cpuOnly: return DeviceUsage(preferred: .cpu(MLCPUComputeDevice()))
    case .cpuAndGPU: return DeviceUsage(preferred: .gpu(MLGPUComputeDevice()))
    case .all, .cpuAndNeuralEngine:
      return DeviceUsage(
        preferred: staysOnCPU
          ? .cpu(MLCPUComputeDevice()) : .neuralEngine(MLNeuralEngineComputeDevice()))
    }
  }
}
