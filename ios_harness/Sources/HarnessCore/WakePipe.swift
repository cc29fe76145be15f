// SPDX-License-Identifier: Apache-2.0

import CHost
import Synchronization

/// Wakes a thread that waits in `poll`, from any thread and without waiting itself.
public final class WakePipe: Sendable {
  /// The end to poll for input.
  public let reader: Int32
  private let writer: Int32
  private let isWoken = Atomic<Bool>(false)

  /// - Throws: `SystemError` when no pipe can be made.
  public init() throws(SystemError) {
    var ends: [Int32] = [0, 0]
    try SystemError.check(chost_pipe(&ends), "make a pipe")
    reader = ends[0]
    writer = ends[1]
  }

  deinit {
    chost_close(reader)
    chost_close(writer)
  }

  /// Wakes the reader; many calls before it is armed again are one.
  public func wake() {
    if isWoken.exchange(true, ordering: .acquiringAndReleasing) { return }
    _ = chost_write_all(writer, [1], 1)
  }

  /// Takes the waking in. None follows until `arm`: a reader that comes back by itself costs the wakers nothing.
  public func takeIn() {
    var bytes = [UInt8](repeating: 0, count: 16)
    _ = chost_read(reader, &bytes, 16)
  }

  /// Lets wakings through again. Call it before looking at what changed.
  public func arm() {
    // A waking before this is seen by the caller, one after it writes a byte again.
    isWoken.store(false, ordering: .sequentiallyConsistent)
  }
}
