// SPDX-License-Identifier: Apache-2.0

/// Holds available memory against the headroom (contract R13). A warning is not guaranteed before a kill.
public struct MemoryGovernor: Sendable {
  /// Share of the limit that is to stay available, in percent; nil switches the governor off.
  public let headroomPercent: Int?

  /// - Parameter headroomPercent: Share of the limit that is to stay available; nil for off.
  public init(headroomPercent: Int?) { self.headroomPercent = headroomPercent }

  /// Whether available memory is under the headroom.
  ///
  /// - Parameters:
  ///   - availableBytes: What is left to the limit.
  ///   - limitBytes: The limit of the process; nil when it is unknown, which is never low.
  /// - Returns: false when the governor is off.
  public func isLow(availableBytes: Int, limitBytes: Int?) -> Bool {
    guard let headroomPercent, let limitBytes else { return false }
    return availableBytes * 100 < limitBytes * headroomPercent
  }

  /// Whether the headroom stays when so much more is taken: what a parity audit asks first (contract R9).
  ///
  /// - Parameters:
  ///   - bytes: What is to be taken.
  ///   - availableBytes: What is left to the limit.
  ///   - limitBytes: The limit of the process; nil when it is unknown, which allows nothing.
  /// - Returns: false also when nothing would be left at all.
  public func allows(bytes: Int, availableBytes: Int, limitBytes: Int?) -> Bool {
    guard let limitBytes else { return false }
    let left = availableBytes - bytes
    return left > 0 && !isLow(availableBytes: left, limitBytes: limitBytes)
  }
}
