// SPDX-License-Identifier: Apache-2.0

import SwiftUI
import UIKit

/// Turns the screen down after half a minute without a touch: a lit screen heats the phone and ages its display, and a
/// dark one would let iOS suspend the app.
struct Dimming: ViewModifier {
  @State private var lastTouch = Date()
  @State private var isDim = false

  private static let delayS = 30.0
  private static let dimBrightness = 0.05
  private static let litBrightness = 0.5
  private let ticks = Timer.publish(every: 1, on: .main, in: .common).autoconnect()

  func body(content: Content) -> some View {
    content
      .contentShape(Rectangle())
      .onTapGesture { wake() }
      .onReceive(ticks) { now in
        if !isDim, now.timeIntervalSince(lastTouch) > Self.delayS { set(dim: true) }
      }
  }

  private func wake() {
    lastTouch = Date()
    if isDim { set(dim: false) }
  }

  private func set(dim: Bool) {
    isDim = dim
    let scenes = UIApplication.shared.connectedScenes.compactMap { $0 as? UIWindowScene }
    for scene in scenes {
      scene.screen.brightness = dim ? Self.dimBrightness : Self.litBrightness
    }
  }
}
