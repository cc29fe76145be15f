// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// One line of a client (docs/protocol.md, 2).
enum ControlCommand {
  case hello(token: String)
  case start(JSONFields)
  case resume(launch: String, sequence: Int)
  case stop
  case status
  /// Not a command: not JSON, no such name, or a field of a wrong type.
  case malformed

  /// Reads a line.
  ///
  /// - Returns: The command, and the `id` that its reply repeats; nil where there is none.
  static func read(_ line: some Sequence<UInt8>) -> (id: Int?, command: ControlCommand) {
    guard let value = try? JSONReader.read(line), let fields = try? JSONFields(value),
      let id = try? fields.integer("id", in: Int.min...Int.max)
    else { return (nil, .malformed) }
    return (id, (try? command(fields)) ?? .malformed)
  }

  private static func command(_ fields: JSONFields) throws(JSONError) -> ControlCommand {
    switch try fields.string("command") {
    case "hello": .hello(token: try fields.string("token"))
    case "start": .start(fields)
    case "resume":
      .resume(launch: try fields.string("launch"), sequence: try fields.integer("seq"))
    case "stop": .stop
    case "status": .status
    default: .malformed
    }
  }
}

/// A reply: one line with the key `reply`, never `kind`.
struct ControlReply {
  let line: [UInt8]

  /// - Parameters:
  ///   - name: The command, or `error` where there is none.
  ///   - id: What the command carried.
  ///   - error: Why it failed; nil for success.
  ///   - fill: Further fields.
  init(
    _ name: String, id: Int?, error: String? = nil, _ fill: (inout LineBuffer) -> Void = { _ in }
  ) {
    var buffer = LineBuffer()
    buffer.begin()
    buffer.field("reply", name)
    buffer.field("id", id)
    buffer.field("ok", error == nil)
    if let error { buffer.field("error", error) }
    fill(&buffer)
    buffer.end()
    line = buffer.bytes
  }
}
