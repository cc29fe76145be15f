// SPDX-License-Identifier: Apache-2.0

/// How a model's weights are stored.
public enum Quantization: String, Sendable, CaseIterable {
  /// 4 bits a weight.
  case int4
  /// 8 bits a weight.
  case int8
}

/// Which weights a phone gets.
public struct QuantizationPolicy: Sendable {
  /// Bands that make the memory class.
  public let bands: MemoryBands

  /// - Parameter bands: Bands that make the memory class.
  public init(bands: MemoryBands = .contract) { self.bands = bands }

  /// 8-bit from the 8 GB class up, else 4-bit.
  ///
  /// - Parameter physicalMemoryBytes: `ProcessInfo.physicalMemory`.
  /// - Returns: The weights to load.
  /// - Throws: `MemoryClassError` under the smallest class.
  public func quantization(
    physicalMemoryBytes: Int
  ) throws(MemoryClassError) -> Quantization {
    try bands.memoryClass(ofBytes: physicalMemoryBytes) == .gb6 ? .int4 : .int8
  }
}
