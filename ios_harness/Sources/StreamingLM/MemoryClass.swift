// SPDX-License-Identifier: Apache-2.0

/// RAM class of an iPhone as the model policy uses it.
public enum MemoryClass: String, Sendable, CaseIterable {
  /// iPhone 14, 15.
  case gb6 = "6gb"
  /// iPhone 15 Pro, 16.
  case gb8 = "8gb"
  /// iPhone 17 Pro.
  case gb12 = "12gb"
}

/// Bands of `physicalMemory` that make a class.
///
/// Every 8 GB iPhone reports less than 8 GiB (8,021,032,960 bytes on iPhone16,2), so classes are bands that round up.
public struct MemoryBands: Sendable {
  /// Smallest `physicalMemory` of a class, in bytes, largest first.
  public let floors: [(floorBytes: Int, memoryClass: MemoryClass)]

  /// - Parameter floors: Smallest `physicalMemory` of each class, in bytes, largest first.
  public init(floors: [(floorBytes: Int, memoryClass: MemoryClass)]) { self.floors = floors }

  /// Contract: 10.0, 7.0 and 5.0 GiB.
  public static let contract = MemoryBands(floors: [
    (10 * gib, .gb12), (7 * gib, .gb8), (5 * gib, .gb6),
  ])

  /// The class of a phone.
  ///
  /// - Parameter physicalMemoryBytes: `ProcessInfo.physicalMemory`.
  /// - Returns: The first class whose floor is reached.
  /// - Throws: `MemoryClassError` under the lowest band.
  public func memoryClass(ofBytes physicalMemoryBytes: Int) throws(MemoryClassError) -> MemoryClass
  {
    for (floorBytes, memoryClass) in floors where physicalMemoryBytes >= floorBytes {
      return memoryClass
    }
    throw MemoryClassError(physicalMemoryBytes: physicalMemoryBytes)
  }

  /// Bytes of one GiB.
  public static let gib = 1024 * 1024 * 1024
}

/// A phone with less memory than the smallest class.
public struct MemoryClassError: Error, Equatable, CustomStringConvertible {
  /// What the phone reports.
  public let physicalMemoryBytes: Int

  /// One line for a person.
  public var description: String {
    "physicalMemory of \(physicalMemoryBytes) bytes is under the smallest class"
  }
}
