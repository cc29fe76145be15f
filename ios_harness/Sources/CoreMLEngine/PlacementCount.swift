// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation

/// How many operations of one kind one processor gets, as the compute plan of a compiled model says.
///
/// `.cpuAndNeuralEngine` falls back to GPU or CPU without a word when the Neural Engine refuses the graph; here it shows.
public struct PlacementCount: Sendable, Equatable {
  /// Kinds of operations.
  public enum Group: String, Sendable, CaseIterable {
    /// Weights that are expanded.
    case weights
    /// Products and convolutions.
    case products
    /// Reads and writes of states.
    case state
    /// Everything else.
    case other

    static func of(_ operatorName: String) -> Group {
      let name = operatorName.split(separator: ".").last.map(String.init) ?? operatorName
      if name.hasPrefix("constexpr") { return .weights }
      if ["linear", "matmul", "conv", "einsum", "scaled_dot_product_attention"].contains(name) {
        return .products
      }
      let states = ["read_state", "write_state", "slice_update", "coreml_update_state"]
      return states.contains(name) ? .state : .other
    }
  }

  /// Processors.
  public enum Device: String, Sendable, CaseIterable {
    /// The CPU.
    case cpu
    /// The GPU.
    case gpu
    /// The Neural Engine.
    case neuralEngine = "neural_engine"
    /// Nowhere: done when the model is loaded.
    case none
  }

  /// Kind of the operations.
  public let group: Group
  /// Processor that is preferred for them.
  public let device: Device
  /// Operations.
  public let count: Int

  /// Counts the operations of a function.
  ///
  /// - Parameters:
  ///   - function: Of a compiled model.
  ///   - units: Processors it would be loaded with.
  /// - Returns: Counts over 0, by kind and processor; empty for a model that is no program.
  /// - Throws: `CoreMLError.load`.
  public static func counts(
    of function: CoreMLFunction, units: MLComputeUnits
  ) async throws -> [PlacementCount] {
    let configuration = MLModelConfiguration()
    configuration.computeUnits = units
    configuration.functionName = function.name
    do {
      let plan = try await MLComputePlan.load(
        contentsOf: function.url, configuration: configuration)
      guard case .program(let program) = plan.modelStructure else { return [] }
      let names = function.name.map { [$0] } ?? Array(program.functions.keys)
      return tally(names.compactMap { program.functions[$0] }.map(\.block), plan)
    } catch { throw CoreMLError.of(error) { .load($0) } }
  }

  private static func tally(
    _ blocks: [MLModelStructure.Program.Block], _ plan: MLComputePlan
  ) -> [PlacementCount] {
    var counts: [Group: [Device: Int]] = [:]
    var waiting = blocks.flatMap(\.operations)
    while let operation = waiting.popLast() {
      waiting += operation.blocks.flatMap(\.operations)
      let device = plan.deviceUsage(for: operation).map { Device($0.preferred) } ?? .none
      counts[Group.of(operation.operatorName), default: [:]][device, default: 0] += 1
    }
    return Group.allCases.flatMap { group in
      Device.allCases.compactMap { device in
        counts[group]?[device].map { PlacementCount(group: group, device: device, count: $0) }
      }
    }
  }
}

extension PlacementCount.Device {
  fileprivate init(_ device: MLComputeDevice) {
    switch device {
    case .cpu: self = .cpu
    case .gpu: self = .gpu
    case .neuralEngine: self = .neuralEngine
    @unknown default: self = .none
    }
  }
}
