// SPDX-License-Identifier: Apache-2.0

#if os(iOS)
  import CApple
  import CHost
  import Foundation
  import SoakRunner

  /// The iPhone that the app runs on, read from the kernel. Nothing here waits or needs the main actor.
  public struct ApplePhone: DevicePlatform {
    /// Who the phone is.
    public let identity: DeviceIdentity
    /// Whether the app is signed with the increased memory limit.
    public let isEntitled: Bool
    /// UIKit's warning and the kernel's pressure source: one may fire without the other.
    public let channels: [WarningChannel] = [.uikit, .dispatch]
    /// A byte is a byte.
    public let memoryScale = 1

    private static let memoryEntitlement = "com.apple.developer.kernel.increased-memory-limit"

    /// Reads who the phone is.
    public init() {
      let version = ProcessInfo.processInfo.operatingSystemVersion
      let patch = version.patchVersion == 0 ? "" : ".\(version.patchVersion)"
      identity = DeviceIdentity(
        productType: Self.systemText("hw.machine"),
        os: "\(version.majorVersion).\(version.minorVersion)\(patch)",
        osBuild: Self.systemText("kern.osversion"),
        physicalMemoryBytes: Int(ProcessInfo.processInfo.physicalMemory),
        pageBytes: Int(chost_page_bytes()), processID: Int(chost_process_id()),
        executableUUID: Self.executableUUID(), bootTimeS: Self.bootTimeS())
      isEntitled = SigningProfile.allows(Self.memoryEntitlement)
    }

    /// The limit of this process: footprint and what is available, read back to back. It can change while the app runs.
    public var limitBytes: Int? {
      let available = Int(capple_available_bytes())
      return available > 0 ? footprintHostBytes() + available : nil
    }

    /// `phys_footprint`, the number that jetsam looks at.
    public func footprintHostBytes() -> Int { max(0, Int(chost_footprint_bytes())) }

    /// Peak, compressed and neural memory, of one reading.
    public func readLedgers() -> MemoryLedgers {
      var ledgers = capple_ledgers()
      guard capple_read_ledgers(&ledgers) else { return MemoryLedgers() }
      return MemoryLedgers(
        peakBytes: Int(ledgers.footprint_peak), compressedBytes: Int(ledgers.compressed),
        neuralBytes: Int(ledgers.neural + ledgers.neural_uncounted))
    }

    private static func systemText(_ name: String) -> String {
      var text = [CChar](repeating: 0, count: 64)
      capple_system_text(name, &text, Int32(text.count))
      let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      return bytes.isEmpty ? "unknown" : String(decoding: bytes, as: UTF8.self)
    }

    /// As crash reports spell it: lower case, with dashes.
    private static func executableUUID() -> String? {
      var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
      let isKnown = withUnsafeMutableBytes(of: &bytes) { raw in
        raw.withMemoryRebound(to: UInt8.self) { capple_image_uuid($0.baseAddress) }
      }
      return isKnown ? UUID(uuid: bytes).uuidString.lowercased() : nil
    }

    private static func bootTimeS() -> Double? {
      let timeS = capple_boot_time_s()
      return timeS > 0 ? timeS : nil
    }
  }

  /// What the app was signed to have. The profile lies in the bundle; iOS offers no other way to ask.
  enum SigningProfile {
    /// Whether the embedded profile grants an entitlement; false for an app without one.
    static func allows(_ entitlement: String) -> Bool {
      guard let url = Bundle.main.url(forResource: "embedded", withExtension: "mobileprovision"),
        let profile = try? Data(contentsOf: url)
      else { return false }
      // A signed envelope around a property list in plain text.
      return profile.range(of: Data("<key>\(entitlement)</key>".utf8)) != nil
    }
  }
#endif
