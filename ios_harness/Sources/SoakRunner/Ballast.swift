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

/// All memory that the app holds beside its model, by `tokens_total`.
final class HeldMemory {
  private let platform: any DevicePlatform
  private let ballasts: [Ballast]
  private let leak: Defects.Leak?
  private var leaked: [MappedRegion] = []
  private var owedBytes = 0
  private var hoard: MappedRegion?

  init(scenario: Scenario, platform: any DevicePlatform, leak: Defects.Leak?) {
    self.platform = platform
    self.leak = leak
    ballasts = scenario.ballast.map { Ballast(span: $0, platform: platform) }
  }

  /// Phone bytes that samples count as ballast.
  var ballastBytes: Int {
    let declared = leak?.isDeclared == true ? leaked.reduce(0) { $0 + $1.byteCount } : 0
    return ballasts.reduce(declared) { $0 + $1.hostBytes } * platform.memoryScale
  }

  /// What is announced before a token's act; nil where nothing begins.
  func announcement(at token: Int) -> String? {
    ballasts.first { $0.begins(at: token) }?.announcement
  }

  /// Acts after a token was recorded.
  ///
  /// - Parameter token: `tokens_total`.
  /// - Returns: Whether the memory changed.
  /// - Throws: `EngineError.memory` when the system gives none.
  func advance(to token: Int) throws(EngineError) -> Bool {
    var hasChanged = try advanceLeak(to: token)
    for ballast in ballasts where try ballast.advance(to: token) { hasChanged = true }
    return hasChanged
  }

  /// Frees all ballast; returns whether there was any.
  func releaseBallast() -> Bool { ballasts.count(where: { $0.release() }) > 0 }

  /// Takes memory that no one asked for, so that the footprint passes the headroom.
  ///
  /// - Parameters:
  ///   - percent: Of the limit, over the headroom.
  ///   - headroomPercent: Of the limit.
  ///   - stateBytes: Phone bytes that the first state set will add.
  /// - Throws: `EngineError.memory` when the system gives none.
  func hoard(percent: Int, headroomPercent: Int, stateBytes: Int) throws(EngineError) {
    guard let limitBytes = platform.limitBytes else { return }
    let wanted = limitBytes / 100 * (100 - headroomPercent + percent)
    let missing = wanted - platform.readMemory().footprint - stateBytes
    if missing > 0 { hoard = try MappedRegion(byteCount: missing / platform.memoryScale) }
  }

  private func advanceLeak(to token: Int) throws(EngineError) -> Bool {
    guard let leak, token >= leak.fromToken else { return false }
    owedBytes += leak.step.hostBytes(memoryScale: platform.memoryScale)
    let page = platform.identity.pageBytes
    let whole = owedBytes / page * page
    if whole == 0 { return false }
    owedBytes -= whole
    leaked.append(try MappedRegion(byteCount: whole))
    return leak.isDeclared
  }
}
