// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import SoakRunner

/// The phone that the environment describes (docs/protocol.md, 1).
public struct VirtualPhone: DevicePlatform {
  /// Who the phone is.
  public let identity: DeviceIdentity
  /// Phone bytes of one host byte.
  public let memoryScale: Int
  /// The per-process limit in phone bytes.
  public let limitBytes: Int?

  /// Variables of a launch, by name.
  public static let variables = [
    "FLEET_TOKEN", "FLEET_PORT", "FLEET_DEFECT", "FLEET_SOCKET", "FLEET_MEMORY_SCALE",
    "FLEET_MEMORY_LIMIT_BYTES", "FLEET_PHYSICAL_MEMORY_BYTES", "FLEET_PRODUCT_TYPE", "FLEET_OS",
    "FLEET_BUILD", "FLEET_LC_UUID", "FLEET_BOOT_TIME_S", "FLEET_PARENT_PID", "HOME",
  ]

  /// - Parameter environment: Reads a variable of the process.
  /// - Throws: `EnvironmentError` when a number is none.
  public init(_ environment: Environment) throws(EnvironmentError) {
    memoryScale = try environment.count("FLEET_MEMORY_SCALE") ?? 1
    limitBytes = try environment.count("FLEET_MEMORY_LIMIT_BYTES")
    identity = DeviceIdentity(
      productType: environment["FLEET_PRODUCT_TYPE"] ?? "unknown",
      os: environment["FLEET_OS"] ?? "unknown",
      osBuild: environment["FLEET_BUILD"] ?? "unknown",
      physicalMemoryBytes: try environment.count("FLEET_PHYSICAL_MEMORY_BYTES")
        ?? Int(chost_physical_memory_bytes()),
      pageBytes: Int(chost_page_bytes()),
      processID: Int(chost_process_id()), executableUUID: environment["FLEET_LC_UUID"],
      bootTimeS: try environment.time("FLEET_BOOT_TIME_S"))
  }

  /// Dirty memory; the phone's kernel reads the same counter.
  public func footprintHostBytes() -> Int { max(0, Int(chost_footprint_bytes())) }
}
