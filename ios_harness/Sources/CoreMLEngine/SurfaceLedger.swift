// SPDX-License-Identifier: Apache-2.0

/// Counts the IOSurfaces that predictions may have left behind since the model was loaded.
///
/// A process may hold 16,384 of them; at the limit every prediction fails and no other compute unit helps, only loading
/// the model again does. A drained pool gives most of them back, but there are reports of leaks that it does not cure,
/// so the ledger assumes the worst and has the model loaded again long before. Sources: totalslacker/switchcraft issues
/// 87, 90 and 93, ml-explore/mlx-swift-lm issue 226, apple/coreai-torch issue 75.
public struct SurfaceLedger: Sendable, Equatable {
  /// What the kernel allows one process.
  public static let processLimit = 16_384
  /// Surfaces at which the model is loaded again.
  public let ceiling: Int
  /// Counted since the model was loaded.
  public private(set) var surfaces = 0
  /// Whether the model must be loaded again before the next state set is made.
  public private(set) var isDue = false

  /// - Parameter ceiling: Half of what the kernel allows by default; Core ML's own arrays need room as well.
  public init(ceiling: Int = SurfaceLedger.processLimit / 2) { self.ceiling = ceiling }

  /// Counts a prediction.
  ///
  /// - Parameter unbacked: Outputs that were not written to arrays of ours.
  mutating func predicted(unbacked: Int) {
    surfaces += unbacked
    if surfaces >= ceiling { isDue = true }
  }

  /// A prediction failed for want of surfaces, whatever was counted.
  mutating func ranOut() { isDue = true }

  mutating func reloaded() { self = SurfaceLedger(ceiling: ceiling) }
}
