// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine
import StreamingLM

/// How the ballast of one span grows, as a pure function of `tokens_total`.
struct BallastGrowth: Equatable {
  let span: Scenario.BallastSpan
  /// Host bytes when it is whole.
  let wholeHostBytes: Int

  /// Limit and footprint are read once, at the span's first token.
  init(span: Scenario.BallastSpan, limitBytes: Int, footprintBytes: Int, memoryScale: Int) {
    self.span = span
    let wanted = limitBytes / 100 * span.toPercent - footprintBytes
    wholeHostBytes = max(0, wanted) / memoryScale
  }

  /// Host bytes after a token of the span: equal steps, both ends included.
  func hostBytes(after token: Int) -> Int {
    let steps = span.toToken - span.fromToken + 1
    let done = min(max(0, token - span.fromToken + 1), steps)
    return Int(Double(wholeHostBytes) * Double(done) / Double(steps))
  }
}

/// Memory that the app holds on purpose, so that the phone comes under pressure. It grows once and is released once.
final class Ballast {
  private enum Stage {
    case waiting
    case holding(BallastGrowth)
    case over
  }

  private let span: Scenario.BallastSpan
  private let platform: any DevicePlatform
  private var stage = Stage.waiting
  private var regions: [MappedRegion] = []

  init(span: Scenario.BallastSpan, platform: any DevicePlatform) {
    self.span = span
    self.platform = platform
  }

  /// Host bytes held.
  var hostBytes: Int { regions.reduce(0) { $0 + $1.byteCount } }

  /// Whether the token is the span's first, before which the growth is announced.
  func begins(at token: Int) -> Bool {
    if case .waiting = stage { return token == span.fromToken && platform.limitBytes != nil }
    return false
  }

  /// What is announced.
  var announcement: String { "to \(span.toPercent) % of the limit by token \(span.toToken)" }

  /// Acts after a token was recorded.
  ///
  /// - Parameter token: `tokens_total`.
  /// - Returns: Whether the memory changed.
  /// - Throws: `EngineError.memory` when the system gives none.
  func advance(to token: Int) throws(EngineError) -> Bool {
    if begins(at: token), let limitBytes = platform.limitBytes {
      stage = .holding(
        BallastGrowth(
          span: span, limitBytes: limitBytes, footprintBytes: platform.readMemory().footprint,
          memoryScale: platform.memoryScale))
    }
    guard case .holding(let growth) = stage else { return false }
    if token > span.toToken, token >= span.toToken + span.holdTokens { return release() }
    let wanted = growth.hostBytes(after: token)
    let page = platform.identity.pageBytes
    let missing = (wanted - hostBytes) / page * page
    if missing <= 0 { return false }
    regions.append(try MappedRegion(byteCount: missing))
    return true
  }

  /// Frees all of it, once it has begun; it does not grow again.
  ///
  /// - Returns: Whether the memory changed.
  @discardableResult
  func release() -> Bool {
    guard case .holding = stage else { return false }
    stage = .over
    defer { regions = [] }
    return !regions.isEmpty
  }
}

/// The defect `jetsam`: memory that grows at each token and is never given back.
final class LeakedMemory {
  private let leak: Defects.Leak
  private var regions: [MappedRegion] = []

  init(_ leak: Defects.Leak) { self.leak = leak }

  /// Host bytes leaked.
  var hostBytes: Int { regions.reduce(0) { $0 + $1.byteCount } }

  /// Leaks one step from the leak's first token on; returns whether it did.
  func advance(to token: Int) throws(EngineError) -> Bool {
    guard token >= leak.fromToken else { return false }
    regions.append(try MappedRegion(byteCount: leak.stepHostBytes))
    return true
  }
}
