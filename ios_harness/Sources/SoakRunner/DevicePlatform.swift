// SPDX-License-Identifier: Apache-2.0

/// The phone that the harness runs on. Sizes in phone bytes: host bytes times the scale.
public protocol DevicePlatform: Sendable {
  /// Who the phone is.
  var identity: DeviceIdentity { get }
  /// Phone bytes of one host byte; 1 on a real phone.
  var memoryScale: Int { get }
  /// The limit of this process; nil when it is unknown.
  var limitBytes: Int? { get }
  /// Whether the app is signed with the increased memory limit.
  var isEntitled: Bool { get }
  /// Where memory warnings come from; each is registered and recorded by itself.
  var channels: [WarningChannel] { get }
  /// Memory the app is charged for, in host bytes.
  func footprintHostBytes() -> Int
  /// What the kernel tells beside the footprint.
  func readLedgers() -> MemoryLedgers
}

extension DevicePlatform {
  /// A host has no such entitlement.
  public var isEntitled: Bool { false }
  /// A host warns over the conditions channel.
  public var channels: [WarningChannel] { [.host] }

  /// A host tells nothing.
  public func readLedgers() -> MemoryLedgers { MemoryLedgers() }

  /// Reads the memory now.
  public func readMemory() -> MemoryReading {
    let hostBytes = footprintHostBytes()
    let footprint = hostBytes * memoryScale
    return MemoryReading(
      footprint: footprint, hostBytes: hostBytes,
      available: limitBytes.map { max(0, $0 - footprint) } ?? 0)
  }
}

/// Where a memory warning comes from.
public enum WarningChannel: String, Sendable, CaseIterable {
  /// UIKit's notification.
  case uikit
  /// The kernel's pressure source.
  case dispatch
  /// The conditions channel of a virtual phone.
  case host
}

/// What the kernel tells beside the footprint, in phone bytes.
public struct MemoryLedgers: Sendable, Equatable {
  /// Highest footprint of the process; nil when it is not told.
  public let peakBytes: Int?
  /// Compressed memory, which counts as footprint.
  public let compressedBytes: Int
  /// Memory of the Neural Engine; nil when it is not told.
  public let neuralBytes: Int?

  /// - Parameters:
  ///   - peakBytes: Highest footprint of the process; nil when it is not told.
  ///   - compressedBytes: Compressed memory.
  ///   - neuralBytes: Memory of the Neural Engine; nil when it is not told.
  public init(peakBytes: Int? = nil, compressedBytes: Int = 0, neuralBytes: Int? = nil) {
    self.peakBytes = peakBytes
    self.compressedBytes = compressedBytes
    self.neuralBytes = neuralBytes
  }
}

/// The app's memory at one moment.
public struct MemoryReading: Sendable, Equatable {
  /// What the app is charged for, in phone bytes.
  public let footprint: Int
  /// The same in host bytes.
  public let hostBytes: Int
  /// What is left to the limit, in phone bytes; 0 when nothing is left or the limit is unknown.
  public let available: Int
}

/// Who the phone is, as `hello` states it.
public struct DeviceIdentity: Sendable, Equatable {
  /// `iPhone15,2`
  public let productType: String
  /// Version of the system.
  public let os: String
  /// Build of the system.
  public let osBuild: String
  /// `ProcessInfo.physicalMemory`.
  public let physicalMemoryBytes: Int
  /// Page size of the host.
  public let pageBytes: Int
  /// The process of the app.
  public let processID: Int
  /// How crash reports name the app's executable; nil when unknown.
  public let executableUUID: String?
  /// Unix time of the phone's boot in seconds; nil when unknown.
  public let bootTimeS: Double?

  /// - Parameters:
  ///   - productType: `iPhone15,2`.
  ///   - os: Version of the system.
  ///   - osBuild: Build of the system.
  ///   - physicalMemoryBytes: `ProcessInfo.physicalMemory`.
  ///   - pageBytes: Page size of the host.
  ///   - processID: The process of the app.
  ///   - executableUUID: How crash reports name the app's executable; nil when unknown.
  ///   - bootTimeS: Unix time of the phone's boot in seconds; nil when unknown.
  public init(
    productType: String, os: String, osBuild: String, physicalMemoryBytes: Int, pageBytes: Int,
    processID: Int, executableUUID: String? = nil, bootTimeS: Double? = nil
  ) {
    self.productType = productType
    self.os = os
    self.osBuild = osBuild
    self.physicalMemoryBytes = physicalMemoryBytes
    self.pageBytes = pageBytes
    self.processID = processID
    self.executableUUID = executableUUID
    self.bootTimeS = bootTimeS
  }
}

/// The app as it names itself.
package struct AppIdentity: Sendable {
  /// Of the app, not of a launch.
  package let name: String
  /// As a person would say it.
  package let version: String

  package static let harness = AppIdentity(name: "fleet-harness", version: "0.1.0")
  static let protocolVersion = 1
  #if DEBUG
    static let build = "debug"
  #else
    static let build = "release"
  #endif

  package init(name: String, version: String) {
    self.name = name
    self.version = version
  }
}
