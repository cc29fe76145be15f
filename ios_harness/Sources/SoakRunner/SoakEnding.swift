// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM
import Synchronization

/// Why and how the soak of a launch ends. Any thread may end it; the first reason stays.
package final class SoakEnding: Sendable {
  private let firstReason = Mutex<FarewellReason?>(nil)
  private let signals: TurnSignals
  private let gauges: Gauges
  private let clock: LaunchClock

  init(signals: TurnSignals, gauges: Gauges, clock: LaunchClock) {
    self.signals = signals
    self.gauges = gauges
    self.clock = clock
  }

  /// Why the soak ends; nil while it goes on.
  package var reason: FarewellReason? { firstReason.withLock { $0 } }

  /// Ends the soak: the turn in flight is cancelled before its next step.
  package func end(_ reason: FarewellReason) {
    firstReason.withLock { $0 = $0 ?? reason }
    signals.isCancelled = true
  }

  /// Completes the soak when its inference time has passed.
  package func endIfDue(after durationS: Double) {
    if gauges.inferenceS(at: clock) >= durationS { end(.completed) }
  }
}
