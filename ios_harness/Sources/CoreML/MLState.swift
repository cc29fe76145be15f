// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The buffers of a stateful model, zeroed when made.
///
/// Unchecked: `lock` is held by the prediction that writes the buffers, and a second one is refused.
public final class MLState: @unchecked Sendable {
  let buffers: [String: MLMultiArray]
  /// The model that made it. Its own object: the state must not keep a model in memory.
  let maker: ObjectIdentifier
  let lock = NSLock()

  init(shapes: [String: [Int]], maker: ObjectIdentifier) {
    buffers = shapes.mapValues { MLMultiArray(lengths: $0, .float16) }
    buffers.values.forEach { $0.zero() }
    self.maker = maker
  }

  /// Opens a buffer; the array is valid inside the closure only.
  ///
  /// Apple ends the process for a name that does not exist; so does this.
  public func withMultiArray<R>(
    for stateName: String, _ body: (MLMultiArray) throws -> R
  ) rethrows -> R {
    guard let buffer = buffers[stateName] else {
      preconditionFailure("there is no state named \(stateName)")
    }
    return try body(buffer)
  }
}
