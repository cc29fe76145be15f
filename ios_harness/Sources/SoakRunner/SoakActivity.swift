// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// What a launch does between `start` and `bye`.
package protocol SoakActivity: Sendable {
  /// Decides everything that follows from the host's order and the phone.
  ///
  /// - Throws: An error that says on one line why this soak cannot be run here.
  func plan(_ order: JSONFields, _ launch: SoakLaunch) throws -> SoakPlan
  /// Runs the soak on the calling thread; calls `didOpen` of the launch once the first records are written.
  ///
  /// - Returns: The reason that `bye` gave.
  func run(_ plan: SoakPlan, _ launch: SoakLaunch) throws -> FarewellReason
}

/// The harness' own pipeline.
struct PipelineActivity: SoakActivity {
  let readers: [String: ModelReader]

  func plan(_ order: JSONFields, _ launch: SoakLaunch) throws -> SoakPlan {
    try SoakPlan(
      order: order, container: launch.container,
      physicalMemoryBytes: launch.telemetry.platform.identity.physicalMemoryBytes,
      readers: readers, defects: launch.defects)
  }

  func run(_ plan: SoakPlan, _ launch: SoakLaunch) throws -> FarewellReason {
    let soak = try Soak(
      plan: plan, telemetry: launch.telemetry, ending: launch.ending, defects: launch.defects)
    launch.didOpen()
    return try soak.run()
  }
}
