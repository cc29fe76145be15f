// SPDX-License-Identifier: Apache-2.0

import StreamingLM

/// What a screen shows of a launch. Sizes in phone bytes.
public struct SoakSnapshot: Sendable, Equatable {
  /// The host's name of the run; nil before the soak was started.
  public let runID: String?
  /// Engine and quantization of the model; nil before the soak was started.
  public let model: String?
  /// B, in tokens; nil before the soak was started.
  public let budget: Int?
  /// Rows of the state set.
  public let rows: Int
  /// Samples of the launch.
  public let tokensTotal: Int
  /// What the pipeline is doing.
  public let phase: PipelinePhase
  /// What the app is charged for.
  public let footprintBytes: Int
  /// The limit of the process; nil when it is unknown.
  public let limitBytes: Int?
  /// Heat of the phone.
  public let thermal: ThermalState
  /// Charge of the battery; nil when it is unknown.
  public let batteryPercent: Int?
  /// Low power mode.
  public let isLowPower: Bool
  /// The notice that is to be shown now.
  public let notice: SoakNotice?

  init(plan: SoakPlan?, telemetry: Telemetry) {
    let (gauges, phone) = (telemetry.gauges, telemetry.phone)
    runID = plan?.runID
    model = plan.map { "\($0.facts.engine), \($0.facts.quantization.rawValue)" }
    budget = plan?.budget.tokens
    rows = gauges.rows.load(ordering: .relaxed)
    tokensTotal = gauges.tokensTotal.load(ordering: .relaxed)
    phase = gauges.phase
    footprintBytes = telemetry.readMemory().footprint
    limitBytes = telemetry.platform.limitBytes
    thermal = phone.thermal
    batteryPercent = phone.batteryPercent
    isLowPower = phone.isLowPower
    notice = telemetry.notices.current
  }
}
