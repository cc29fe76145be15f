// SPDX-License-Identifier: Apache-2.0

import ApplePlatform
import CoreMLEngine
import Foundation
import SoakRunner

/// What the screen shows, read from the launch a few times a second: the pipeline never waits for a view.
@MainActor
final class SoakObserver: ObservableObject {
  /// Where the launch stands.
  enum Stage: Equatable {
    /// Opened by a person: no host, no orders.
    case unattended
    /// The journal or the port cannot be used.
    case failed(String)
    /// Serving the host.
    case serving
  }

  @Published private(set) var stage = Stage.unattended
  @Published private(set) var snapshot: SoakSnapshot?
  @Published private(set) var tokensPerS = 0.0

  private var launch: AppleLaunch?
  private var lastReading: (tokens: Int, at: ContinuousClock.Instant)?

  private static let cache = URL.cachesDirectory.appending(path: "models")
  private static let period = Duration.milliseconds(500)

  /// Starts the launch and refreshes the screen until the view goes away.
  func run() async {
    start()
    while !Task.isCancelled {
      refresh()
      try? await Task.sleep(for: Self.period)
    }
  }

  /// The notice is on the screen: only now its record may be written.
  func noticeAppeared(_ notice: SoakNotice) { launch?.launch.noticeWasShown(notice) }

  private func start() {
    guard launch == nil, stage == .unattended else { return }
    do {
      launch = try AppleLaunch.start(readers: ["coreml": CoreMLSoakModel.reader(cache: Self.cache)])
      if launch != nil { stage = .serving }
    } catch { stage = .failed("\(error)") }
  }

  private func refresh() {
    guard let launch else { return }
    let snapshot = launch.launch.snapshot()
    let now = ContinuousClock.now
    if let last = lastReading {
      let elapsed = last.at.duration(to: now) / .seconds(1)
      tokensPerS = elapsed > 0 ? Double(snapshot.tokensTotal - last.tokens) / elapsed : 0
    }
    lastReading = (snapshot.tokensTotal, now)
    self.snapshot = snapshot
  }
}
