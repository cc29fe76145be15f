// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM
import Synchronization

/// Numbers of a launch that one thread sets and others read. Sizes in phone bytes.
package final class Gauges: Sendable {
  /// Samples of the launch.
  package let tokensTotal = Atomic<Int>(0)
  /// Rows of the state set.
  let rows = Atomic<Int>(0)
  /// Live state sets.
  let stateBytes = Atomic<Int>(0)
  /// Surfaces that the engine may hold.
  package let surfaces = Atomic<Int>(0)
  /// Ballast, and what a defect leaks.
  let ballastBytes = Atomic<Int>(0)
  /// Weights of the loaded model.
  package let weightsBytes = Atomic<Int>(0)
  /// Highest footprint seen.
  let peakBytes = Atomic<Int>(0)
  /// Start of the first prediction; -1 before it.
  package let firstPredictionNs = Atomic<Int64>(-1)
  private let phaseIndex = Atomic<Int>(0)

  /// What the pipeline is doing.
  package var phase: PipelinePhase {
    get { PipelinePhase.allCases[phaseIndex.load(ordering: .relaxed)] }
    set {
      phaseIndex.store(PipelinePhase.allCases.firstIndex(of: newValue) ?? 0, ordering: .relaxed)
    }
  }

  /// Seconds since the first prediction began; 0 before it.
  func inferenceS(at clock: LaunchClock) -> Double {
    let firstNs = firstPredictionNs.load(ordering: .relaxed)
    return firstNs < 0 ? 0 : Double(clock.nowNs - firstNs) / 1e9
  }
}

/// What the phone last said of itself.
struct PhoneConditions: Sendable {
  var thermal = ThermalState.nominal
  var batteryPercent: Int?
  var isCharging: Bool?
  var isLowPower = false
  var isForegroundForPhone = true
  var isForegroundForScenario = true

  var isForeground: Bool { isForegroundForPhone && isForegroundForScenario }
}

/// Heat of the phone, as `ProcessInfo.thermalState` names it.
public enum ThermalState: String, Sendable, CaseIterable {
  /// No corrective action.
  case nominal
  /// Slightly warm.
  case fair
  /// The system slows down.
  case serious
  /// The system asks for rest at once.
  case critical
}

/// What the phone tells the app.
public enum Condition: Sendable, Equatable {
  /// The kernel warns of memory pressure.
  case memoryWarning(WarningChannel)
  /// The thermal state.
  case thermal(ThermalState)
  /// The battery's charge.
  case battery(percent: Int, isCharging: Bool)
  /// The app entered (true) or left the foreground.
  case foreground(Bool)
  /// Low power mode.
  case lowPower(Bool)
}
