// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import SoakRunner

/// What the phone's kernel tells the app, as JSON lines; its end is the end of the phone.
public enum ConditionsChannel {
  /// Status of an app whose phone is gone.
  public static let phoneGoneStatus: Int32 = 18
  private static let longestLineBytes = 64 * 1024

  /// Reads the channel on a thread of its own until its end, then ends the process at once.
  ///
  /// - Parameters:
  ///   - descriptor: The channel; blocking.
  ///   - deliver: Takes the conditions in.
  /// - Throws: `SystemError` when no thread can be started.
  public static func watch(
    _ descriptor: Int32, deliver: @escaping @Sendable (Condition) -> Void
  ) throws(SystemError) {
    try Worker.start {
      read(descriptor, deliver)
      chost_exit_now(phoneGoneStatus)
    }
  }

  private static func read(_ descriptor: Int32, _ deliver: (Condition) -> Void) {
    var rest: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = Int(chost_read(descriptor, &chunk, Int64(chunk.count)))
      if count < 0, chost_is_transient(Int32(count)) { continue }
      if count <= 0 { return }
      rest += chunk[0..<count]
      var lines = rest.split(separator: 0x0A, omittingEmptySubsequences: false)
      rest = Array(lines.removeLast())
      if rest.count > longestLineBytes { rest = [] }
      lines.compactMap(condition).forEach(deliver)
    }
  }

  /// Reads one line.
  ///
  /// - Parameter line: Without its end.
  /// - Returns: nil for an event that is unknown or malformed: those are ignored.
  public static func condition(_ line: some Sequence<UInt8>) -> Condition? {
    guard let value = try? JSONReader.read(line), let fields = try? JSONFields(value) else {
      return nil
    }
    return try? condition(fields)
  }

  private static func condition(_ fields: JSONFields) throws(JSONError) -> Condition? {
    switch try fields.string("event") {
    case "memory_warning": .memoryWarning(.host)
    case "thermal": .thermal(try fields.choice("state", ThermalState.self))
    case "battery":
      .battery(
        percent: try fields.integer("level_percent", in: 0...100),
        isCharging: try fields.bool("charging"))
    case "foreground": .foreground(try fields.bool("value"))
    case "low_power": .lowPower(try fields.bool("value"))
    default: nil
    }
  }
}

/// Ties the app to the phone that started it.
public enum ParentProcess {
  /// Has the kernel end this process with its parent, on Linux; elsewhere the end of the conditions channel alone does.
  ///
  /// A stopped process does not read its channel, so both are needed. It is armed only where the parent is the phone
  /// itself.
  ///
  /// - Parameter processID: The phone.
  /// - Returns: Whether the phone is still there.
  public static func tie(to processID: Int) -> Bool {
    if Int(chost_parent_id()) != processID { return chost_is_alive(Int32(processID)) }
    chost_die_with_parent()
    return Int(chost_parent_id()) == processID  // it may have ended before the call
  }
}
