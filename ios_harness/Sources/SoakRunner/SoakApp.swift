// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore

/// One launch of the app, from a listening socket to an exit status. Owned by the main thread, which serves clients and
/// takes samples; the pipeline and the conditions channel have threads of their own.
public final class SoakApp: ControlDesk {
  private let launch: SoakLaunch
  private let reader: JournalReader
  private(set) var isStarted = false
  private var samplePeriodNs = Int64.max
  private var durationS = Double.infinity
  private var nextSampleNs: Int64?
  private var nextHeartbeatNs: Int64?

  private static let heartbeatNs: Int64 = 5_000_000_000
  private static let longestWaitNs: Int64 = 10_000_000_000

  /// - Parameter launch: What the launch's threads share.
  /// - Throws: `SystemError` when the journal cannot be read back.
  public init(launch: SoakLaunch) throws(SystemError) {
    self.launch = launch
    reader = try JournalReader(launch.journal, altering: launch.defects.alteredSequence)
  }

  /// Serves clients until the soak has ended.
  ///
  /// - Parameters:
  ///   - listener: A listening socket; closed at the end.
  ///   - token: What a client must present.
  /// - Returns: The status to exit with: 0, or 1 when the soak could not go on.
  public func run(listener: Int32, token: String) -> Int32 {
    let server = ControlServer(
      listener: listener, token: token, reader: reader, wake: launch.wake, desk: self)
    while true {
      if let status = launch.status {
        server.sayGoodbye()
        return status
      }
      server.serve(untilNs: tick())
    }
  }

  /// Does what is due by the clock and returns when to come back.
  private func tick() -> Int64 {
    let nowNs = launch.journal.clock.nowNs
    guard launch.isRecording else { return nowNs + Self.longestWaitNs }
    launch.ending.endIfDue(after: durationS)
    var sampleNs = nextSampleNs ?? nowNs
    var heartbeatNs = nextHeartbeatNs ?? nowNs + Self.heartbeatNs
    do throws(SystemError) {
      if nowNs >= sampleNs {
        try launch.telemetry.sample()
        sampleNs = max(sampleNs + samplePeriodNs, nowNs)
      }
      if nowNs >= heartbeatNs {
        try launch.telemetry.heartbeat()
        heartbeatNs = max(heartbeatNs + Self.heartbeatNs, nowNs)
      }
    } catch { launch.fail(error) }
    (nextSampleNs, nextHeartbeatNs) = (sampleNs, heartbeatNs)
    return min(sampleNs, heartbeatNs)
  }

  func start(_ order: JSONFields) throws {
    let plan = try launch.activity.plan(order, launch)
    samplePeriodNs = Int64(plan.scenario.samplePeriodMs) * 1_000_000
    durationS = plan.scenario.durationS
    try launch.start(plan)
    isStarted = true
  }

  func stop() {
    launch.ending.end(.stopped)
    if !isStarted { launch.finish(0) }
  }

  func writeIdentity(to line: inout LineBuffer) {
    line.field("app", launch.telemetry.app.name)
    line.field("pid", launch.telemetry.platform.identity.processID)
    line.field("launch", launch.journal.launch.description)
    line.field("started", isStarted)
    line.field("seq", launch.journal.lastSequence)
  }

  func writeStatus(to line: inout LineBuffer) {
    let gauges = launch.telemetry.gauges
    line.field("started", isStarted)
    line.field("seq", launch.journal.lastSequence)
    line.field("tokens_total", gauges.tokensTotal.load(ordering: .relaxed))
    line.field("phase", gauges.phase)
  }
}
