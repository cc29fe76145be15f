// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import SoakRunner
import StreamingLM

/// Lets `fleet soak` examine an app that has its own pipeline: records, journal and control server, and nothing else.
///
/// The host gives the orders; the app runs its pipeline in a closure and reports what it does. Checks whose records the
/// app does not send are *unmeasured*, never passed.
public final class SoakProbe: Sendable {
  private let launch: SoakLaunch

  /// Opens the journal in the app's container.
  ///
  /// - Parameters:
  ///   - app: What the app says of itself.
  ///   - platform: The phone: `ApplePhone()` on an iPhone.
  ///   - container: The app's container, `NSHomeDirectory()` on an iPhone.
  ///   - pipeline: Runs once, on a thread of its own, when the host starts the soak. It returns when `isOver` is true.
  /// - Throws: `SystemError` when the container cannot be written.
  public init(
    app: ProbeApp, platform: any DevicePlatform, container: String,
    pipeline: @escaping @Sendable (ProbeSession) throws -> Void
  ) throws(SystemError) {
    launch = try SoakLaunch(
      platform: platform, container: container, notices: .shownByView,
      app: AppIdentity(name: app.name, version: app.version),
      activity: ProbeActivity(app: app, pipeline: pipeline))
  }

  /// Takes in what the phone tells the app: memory warnings, heat, foreground. Safe from any thread.
  public func deliver(_ condition: Condition) { launch.deliver(condition) }

  /// Serves the host until the soak has ended; blocks the calling thread.
  ///
  /// - Parameters:
  ///   - listener: A listening socket on the loopback; closed at the end.
  ///   - token: What a client must present: `FLEET_TOKEN` of the environment. Without one do not serve.
  /// - Returns: The status to exit with.
  /// - Throws: `SystemError` when the journal cannot be read back.
  public func serve(listener: Int32, token: String) throws(SystemError) -> Int32 {
    try SoakApp(launch: launch).run(listener: listener, token: token)
  }
}

/// What runs between `start` and `bye`: the app's closure.
private struct ProbeActivity: SoakActivity {
  let app: ProbeApp
  let pipeline: @Sendable (ProbeSession) throws -> Void

  func plan(_ order: JSONFields, _ launch: SoakLaunch) throws -> SoakPlan {
    try SoakPlan(
      order: order, model: OwnModel(facts: app.facts), digest: app.digest,
      budgetTokens: app.budgetTokens,
      physicalMemoryBytes: launch.telemetry.platform.identity.physicalMemoryBytes)
  }

  func run(_ plan: SoakPlan, _ launch: SoakLaunch) throws -> FarewellReason {
    let session = ProbeSession(plan: plan, launch: launch)
    try session.open()
    do { try pipeline(session) } catch { try session.fault("pipeline", "\(error)") }
    return try session.close()
  }
}

/// A model that the app loads itself.
private struct OwnModel: SoakModel {
  let facts: ModelFacts

  func supports(_ sampling: SamplingSetting) -> Bool { true }

  func load(_ order: LoadOrder) throws -> LoadedModel {
    throw EngineError.failed("the app loads its own model")
  }
}
