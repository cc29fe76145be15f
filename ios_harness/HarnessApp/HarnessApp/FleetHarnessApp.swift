// SPDX-License-Identifier: Apache-2.0

import ApplePlatform
import SwiftUI

/// The app that a soak examines. The host starts it with a token and gives the orders; a person only looks.
@main
struct FleetHarnessApp: App {
  @StateObject private var observer = SoakObserver()

  var body: some Scene {
    WindowGroup {
      SoakScreen(observer: observer)
        .task { await observer.run() }
    }
  }
}
