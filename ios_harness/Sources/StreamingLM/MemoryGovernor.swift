// SPDX-License-Identifier: Apache-2.0

/// Watches available memory against the headroom (contract R13). A warning is not guaranteed before a kill.
public struct MemoryGovernor: Sendable {
  /// Share of the limit that is to stay available, in percent; nil switches the governor off.
  public let headroomPercent: Int?
  private var isBelow = false

  /// - Parameter headroomPercent: Share of the limit that is to stay available; nil for off.
  public init(headroomPercent: Int?) { self.headroomPercent = headroomPercent }

  /// Takes one reading in.
  ///
  /// - Parameters:
  ///   - footprintBytes: Memory the app is charged for.
  ///   - availableBytes: What is left to the limit; 0 means unknown.
  /// - Returns: Whether memory has just fallen under the headroom. It reports a fall once: the cache is allocated
  ///   at full length, so a second trim would free nothing.
  public mutating func fellLow(footprintBytes: Int, availableBytes: Int) -> Bool {
    guard let headroomPercent, availableBytes > 0 else { return false }
    let limitBytes = footprintBytes + availableBytes
    let wasBelow = isBelow
    isBelow = availableBytes * 100 < limitBytes * headroomPercent
    return isBelow && !wasBelow
  }
}
