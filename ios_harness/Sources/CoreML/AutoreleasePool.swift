// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs a closure and gives back what predictions left for the pool, as the Objective-C runtime does.
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result {
  let outer = SurfacePool.current
  let pool = SurfacePool()
  SurfacePool.current = pool
  defer {
    SurfacePool.current = outer
    pool.drain()
  }
  return try body()
}

/// Surfaces of one process' pools; each thread has its own stack of pools.
final class SurfacePool {
  private var releases: [() -> Void] = []

  private static let key = "fleet.stand-in.pool"

  static var current: SurfacePool? {
    get { Thread.current.threadDictionary[key] as? SurfacePool }
    set { Thread.current.threadDictionary[key] = newValue }
  }

  func add(_ release: @escaping () -> Void) { releases.append(release) }

  func drain() {
    releases.forEach { $0() }
    releases = []
  }
}
