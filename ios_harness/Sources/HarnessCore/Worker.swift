// SPDX-License-Identifier: Apache-2.0

import CHost

/// A thread of its own for work that blocks. A prediction of 30 ms must not sit on Swift's shared pool.
public enum Worker {
  /// Enough for the pipeline, and small: 100 virtual phones run on one machine.
  private static let stackBytes: Int64 = 512 * 1024

  /// Starts a detached thread.
  ///
  /// - Parameter body: Runs once on the new thread.
  /// - Throws: `SystemError` when no thread can be started; `body` is then dropped.
  public static func start(_ body: @escaping @Sendable () -> Void) throws(SystemError) {
    let work = Unmanaged.passRetained(Work(body))
    let code = chost_start_thread(
      { context in
        guard let context else { return }
        Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body()
      }, work.toOpaque(), stackBytes)
    if code < 0 { work.release() }
    try SystemError.check(code, "start a thread")
  }

  private final class Work: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
}
