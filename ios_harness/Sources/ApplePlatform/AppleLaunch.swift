// SPDX-License-Identifier: Apache-2.0

#if os(iOS)
  import CHost
  import Foundation
  import HarnessCore
  import SoakRunner
  import UIKit

  /// One launch of the app on an iPhone: what `harness-host` is on a virtual one.
  @MainActor
  public final class AppleLaunch {
    /// What the launch's threads share.
    public let launch: SoakLaunch
    private let events: PhoneEvents

    private static let defaultPort = 28450
    /// `EX_USAGE`: an unknown defect must not look like one that was not caught.
    private static let unknownDefectStatus: Int32 = 64

    /// Opens the journal and serves the host on the phone's loopback, which usbmux reaches and Wi-Fi does not.
    ///
    /// - Parameters:
    ///   - environment: Of the process; the host's token stands in it.
    ///   - readers: Read packages that are no witness, by kind.
    /// - Returns: nil for an app that a person has opened: without a token nobody may give orders.
    /// - Throws: `SystemError` when the container or the port cannot be used.
    public static func start(
      environment: [String: String] = ProcessInfo.processInfo.environment,
      readers: [String: ModelReader] = [:]
    ) throws -> AppleLaunch? {
      guard let token = environment["FLEET_TOKEN"], !token.isEmpty else { return nil }
      return try AppleLaunch(token: token, environment, readers)
    }

    private init(
      token: String, _ environment: [String: String], _ readers: [String: ModelReader]
    ) throws {
      chost_ignore_broken_pipes()
      let launch = try SoakLaunch(
        platform: ApplePhone(), container: NSHomeDirectory(), readers: readers,
        defects: Self.defects(environment["FLEET_DEFECT"] ?? ""), notices: .shownByView)
      self.launch = launch
      events = PhoneEvents { launch.deliver($0) }
      // Auto-lock would suspend the app in the middle of a soak.
      UIApplication.shared.isIdleTimerDisabled = true
      let port = environment["FLEET_PORT"].flatMap(UInt16.init) ?? UInt16(Self.defaultPort)
      let listener = try SystemError.check(
        chost_listen_loopback(port), "listen on port \(port)")
      try Worker.start { Self.serve(launch, listener, token) }
    }

    private static func defects(_ name: String) -> Defects {
      do { return try DefectCatalog.defects(named: name) } catch {
        chost_exit_now(unknownDefectStatus)
      }
    }

    /// Serves the host on a thread of its own, then ends the process: the host waits for its exit status.
    private nonisolated static func serve(
      _ launch: SoakLaunch, _ listener: Int32, _ token: String
    ) {
      do {
        let app = try SoakApp(launch: launch)
        chost_exit_now(app.run(listener: listener, token: token))
      } catch {
        NSLog("fleet-harness: %@", "\(error)")
        chost_exit_now(1)
      }
    }
  }
#endif
