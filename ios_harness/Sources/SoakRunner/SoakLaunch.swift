// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import StreamingLM
import Synchronization

/// What the threads of one launch share.
public final class SoakLaunch: Sendable {
  package let journal: Journal
  package let telemetry: Telemetry
  package let ending: SoakEnding
  let wake: WakePipe
  let container: String
  let defects: Defects
  let activity: any SoakActivity

  private let startedPlan = Mutex<SoakPlan?>(nil)
  private let isOpen = Atomic<Bool>(false)
  private let exitStatus = Atomic<Int>(-1)

  /// Opens the journal.
  ///
  /// - Parameters:
  ///   - platform: The phone.
  ///   - container: The app's container; `Documents/` lies in it.
  ///   - readers: Read packages, by kind, beside those of witness and reference.
  ///   - defects: A healthy app's by default.
  ///   - notices: When a notice counts as shown.
  /// - Throws: `SystemError` when the container cannot be written.
  public convenience init(
    platform: any DevicePlatform, container: String, readers: [String: ModelReader] = [:],
    defects: Defects = Defects(), notices: NoticePresentation = .immediate
  ) throws(SystemError) {
    let own: [String: ModelReader] = [
      "witness": WitnessSoakModel.read, "reference": ReferenceSoakModel.read,
    ]
    try self.init(
      platform: platform, container: container, defects: defects, notices: notices,
      app: .harness, activity: PipelineActivity(readers: readers.merging(own) { given, _ in given })
    )
  }

  /// Opens the journal of an app that does something else between `start` and `bye`.
  package init(
    platform: any DevicePlatform, container: String, defects: Defects = Defects(),
    notices: NoticePresentation, app: AppIdentity, activity: any SoakActivity
  ) throws(SystemError) {
    let wake = try WakePipe()
    self.wake = wake
    self.container = container
    self.defects = defects
    self.activity = activity
    journal = try Journal(
      folder: "\(container)/Documents/fleet", launch: LaunchIdentifier(), clock: LaunchClock(),
      loss: defects.loss, didAppend: { wake.wake() })
    telemetry = Telemetry(
      journal: journal, platform: platform, hearsWarnings: defects.hearsWarnings,
      notices: notices, app: app)
    ending = SoakEnding(
      signals: telemetry.signals, gauges: telemetry.gauges, clock: journal.clock)
  }

  /// Whether the first records are written: from here on warnings are heard and samples taken.
  var isRecording: Bool { isOpen.load(ordering: .acquiring) }

  /// Status that the process is to exit with; nil while it goes on.
  var status: Int32? {
    let status = exitStatus.load(ordering: .acquiring)
    return status < 0 ? nil : Int32(status)
  }

  /// Takes in what the phone tells the app. Safe from any thread.
  public func deliver(_ condition: Condition) {
    do throws(SystemError) {
      let hasMoved = telemetry.note(condition)
      switch condition {
      case .memoryWarning(let channel): if isRecording { try telemetry.warn(.kernel, channel) }
      case .foreground(let isForeground) where hasMoved:
        if isRecording {
          try telemetry.moved(toForeground: isForeground, .phone)
        } else {
          telemetry.shareForeground()
        }
      default: break
      }
    } catch { fail(error) }
  }

  /// What a screen shows of the launch now. Safe from any thread; nothing waits for the screen.
  public func snapshot() -> SoakSnapshot {
    SoakSnapshot(plan: startedPlan.withLock { $0 }, telemetry: telemetry)
  }

  /// A view shows the notice: its record is written. Safe from any thread; once for each notice.
  public func noticeWasShown(_ notice: SoakNotice) {
    do throws(SystemError) { try telemetry.notices.wasShown(notice) } catch { fail(error) }
  }

  /// Runs the soak on a thread of its own.
  ///
  /// - Throws: `SystemError` when no thread can be started.
  func start(_ plan: SoakPlan) throws(SystemError) {
    startedPlan.withLock { $0 = plan }
    try Worker.start { self.play(plan) }
  }

  private func play(_ plan: SoakPlan) {
    do {
      let reason = try activity.run(plan, self)
      finish(reason == .fault ? 1 : 0)
    } catch {
      fail(error)
    }
  }

  /// The first records are written.
  package func didOpen() { isOpen.store(true, ordering: .releasing) }

  /// Ends the process with a status once the client has what it is owed.
  func finish(_ status: Int32) {
    _ = exitStatus.compareExchange(
      expected: -1, desired: Int(status), ordering: .acquiringAndReleasing)
    wake.wake()
  }

  /// Ends a launch that cannot go on. When the journal is what failed, the console is all that is left.
  func fail(_ error: any Error) {
    let text = Array("\(telemetry.app.name): \(error)\n".utf8)
    _ = chost_write_all(2, text, Int64(text.count))
    _ = try? journal.record("fault", .machine) { line in
      line.field("code", "unrecoverable")
      line.field("message", "\(error)")
      line.field("phase", telemetry.gauges.phase)
    }
    // A run that has totals says them itself; what ends here could not begin, or cannot write.
    try? telemetry.sayBye(.fault, SoakTotals())
    finish(1)
  }
}
