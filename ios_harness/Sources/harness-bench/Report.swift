// SPDX-License-Identifier: Apache-2.0

import CHost

/// Text for a person.
enum Report {
  static func say(_ text: String) {
    let line = Array("\(text)\n".utf8)
    _ = chost_write_all(1, line, Int64(line.count))
  }

  /// A table in Markdown.
  static func table(_ title: String, _ head: [String], _ rows: [[String]]) -> String {
    let rule = head.map { _ in "---" }
    let lines = ([head, rule] + rows).map { "| \($0.joined(separator: " | ")) |" }
    return "### \(title)\n\n\(lines.joined(separator: "\n"))\n"
  }

  /// A number with so many decimals.
  static func text(_ value: Double, _ decimals: Int = 2) -> String {
    var scale = 1.0
    for _ in 0..<decimals { scale *= 10 }
    let rounded = (value * scale).rounded() / scale
    return decimals == 0 ? "\(Int(rounded))" : "\(rounded)"
  }
}

/// The middle of several times, in nanoseconds.
func median(_ timesNs: [Int64]) -> Double {
  timesNs.isEmpty ? 0 : Double(timesNs.sorted()[timesNs.count / 2])
}
