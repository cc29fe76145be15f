// SPDX-License-Identifier: Apache-2.0

#if os(iOS)
  import Dispatch
  import Foundation
  import SoakRunner
  import UIKit

  /// Tells the launch what iOS says: memory warnings, heat, battery, low power, foreground.
  ///
  /// The two memory channels stay apart: UIKit's warning comes through the main run loop, the pressure source straight
  /// from the kernel, and one may fire without the other. Neither is guaranteed before a kill. Lives as long as the app.
  @MainActor
  public final class PhoneEvents {
    private let deliver: @Sendable (Condition) -> Void
    private let pressure: any DispatchSourceMemoryPressure
    private var observers: [any NSObjectProtocol] = []

    /// Registers for everything and reports the present state once.
    ///
    /// - Parameter deliver: Takes the conditions in, on any thread.
    public init(deliver: @escaping @Sendable (Condition) -> Void) {
      self.deliver = deliver
      pressure = DispatchSource.makeMemoryPressureSource(
        eventMask: [.warning, .critical], queue: .global(qos: .userInteractive))
      // Typed: a closure that took over the main actor's isolation would trap on the source's queue.
      let pressed: @Sendable () -> Void = { deliver(.memoryWarning(.dispatch)) }
      pressure.setEventHandler(handler: pressed)
      pressure.activate()
      observe(UIApplication.didReceiveMemoryWarningNotification) { .memoryWarning(.uikit) }
      observe(UIApplication.didEnterBackgroundNotification) { .foreground(false) }
      observe(UIApplication.willEnterForegroundNotification) { .foreground(true) }
      observe(ProcessInfo.thermalStateDidChangeNotification) { Self.thermal }
      observe(.NSProcessInfoPowerStateDidChange) { Self.lowPower }
      watchBattery()
      deliver(Self.thermal)
      deliver(Self.lowPower)
    }

    private func observe(
      _ name: Notification.Name, _ condition: @escaping @Sendable () -> Condition
    ) {
      // Without a queue the block runs where the notification is posted: a warning must not wait for a busy main queue.
      let deliver = deliver
      let block: @Sendable (Notification) -> Void = { _ in deliver(condition()) }
      observers.append(
        NotificationCenter.default.addObserver(
          forName: name, object: nil, queue: nil, using: block))
    }

    private func watchBattery() {
      UIDevice.current.isBatteryMonitoringEnabled = true
      let names = [
        UIDevice.batteryLevelDidChangeNotification, UIDevice.batteryStateDidChangeNotification,
      ]
      for name in names {
        observers.append(
          NotificationCenter.default.addObserver(forName: name, object: nil, queue: .main) {
            [weak self] _ in
            MainActor.assumeIsolated { self?.reportBattery() }
          })
      }
      reportBattery()
    }

    private func reportBattery() {
      let device = UIDevice.current
      guard device.batteryLevel >= 0 else { return }  // -1: not known
      deliver(
        .battery(
          percent: Int((device.batteryLevel * 100).rounded()),
          isCharging: device.batteryState == .charging || device.batteryState == .full))
    }

    private nonisolated static var thermal: Condition {
      switch ProcessInfo.processInfo.thermalState {
      case .nominal: .thermal(.nominal)
      case .fair: .thermal(.fair)
      case .serious: .thermal(.serious)
      case .critical: .thermal(.critical)
      @unknown default: .thermal(.critical)
      }
    }

    private nonisolated static var lowPower: Condition {
      .lowPower(ProcessInfo.processInfo.isLowPowerModeEnabled)
    }
  }
#endif
