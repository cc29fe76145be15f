// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore

extension Defects.Mishap {
  /// Lets it happen. A crash, a hang and an exit do not return.
  func happen(_ ending: SoakEnding) throws(SystemError) {
    switch kind {
    case .crash: chost_abort()
    case .exit: chost_exit_now(0)
    case .earlyEnd: ending.end(.completed)
    case .hang:
      let clock = LaunchClock()
      while true { clock.sleep(untilNs: clock.nowNs + 1_000_000_000) }
    }
  }
}
