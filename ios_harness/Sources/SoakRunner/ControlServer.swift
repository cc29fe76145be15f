// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore

/// What commands act on.
protocol ControlDesk: AnyObject {
  /// Whether the soak was started.
  var isStarted: Bool { get }
  /// Starts the soak.
  ///
  /// - Throws: What is wrong with the order.
  func start(_ order: JSONFields) throws
  /// Ends the soak, or the app where it has not begun.
  func stop()
  /// Writes the fields of `hello`'s reply after `protocol`.
  func writeIdentity(to line: inout LineBuffer)
  /// Writes the fields of `status`'s reply.
  func writeStatus(to line: inout LineBuffer)
}

/// The control server: clients, commands and records on one thread that never waits for a client.
///
/// Records are sent from the journal's file, so a slow client delays nobody and a resume costs nothing.
final class ControlServer {
  private let listener: Int32
  private let token: [UInt8]
  private let reader: JournalReader
  private let wake: WakePipe
  private unowned let desk: any ControlDesk
  private var connections: [ControlConnection] = []
  /// Until then records do not wake this thread; nil when they do.
  private var quietUntilNs: Int64?
  private var sentBytes = 0

  /// Time for a client to show the token.
  private static let helloLimitNs: Int64 = 10_000_000_000
  /// Beyond it a new client is turned away.
  private static let mostConnections = 8
  /// Records that come in a row are sent this often: a wake for each would cost the pipeline more than its writing.
  private static let gatherNs: Int64 = 20_000_000
  private static let drainLimitNs: Int64 = 5_000_000_000
  private static let farewellLimitNs: Int64 = 500_000_000

  init(
    listener: Int32, token: String, reader: JournalReader, wake: WakePipe, desk: any ControlDesk
  ) {
    self.listener = listener
    self.token = Array(token.utf8)
    self.reader = reader
    self.wake = wake
    self.desk = desk
  }

  deinit { chost_close(listener) }

  private var clock: LaunchClock { reader.journal.clock }
  private var current: ControlConnection? { connections.first { $0.isAdmitted } }

  /// Serves whoever is ready, or waits for it.
  ///
  /// - Parameter deadlineNs: Returns by then at the latest.
  func serve(untilNs deadlineNs: Int64) {
    armIfQuiet()
    let deadlineNs = min(deadlineNs, quietUntilNs ?? deadlineNs)
    var watches = [watch(listener), watch(wake.reader)]
    watches += connections.map { connection in
      watch(
        connection.descriptor, input: connection.wantsInput, output: connection.wantsOutput)
    }
    let waitMs = min(max(0, (deadlineNs - clock.nowNs + 999_999) / 1_000_000), 10_000)
    _ = chost_poll(&watches, Int32(watches.count), Int32(waitMs))
    if watches[1].input {
      wake.takeIn()
      quietUntilNs = clock.nowNs + Self.gatherNs
    }
    for (connection, watch) in zip(connections, watches.dropFirst(2)) {
      if watch.input { connection.receive().forEach { answer($0, connection) } }
      if watch.output { sentBytes += connection.send() }
    }
    if watches[0].input { accept() }
    dropClosed()
  }

  /// Goes on looking by the clock as long as there was something to send, and has itself woken when there was not.
  private func armIfQuiet() {
    guard let untilNs = quietUntilNs, clock.nowNs >= untilNs else { return }
    if sentBytes > 0 {
      quietUntilNs = clock.nowNs + Self.gatherNs
      sentBytes = 0
    } else {
      quietUntilNs = nil
      wake.arm()
    }
  }

  /// Gives the client what is left, for a limited time, and the end of the stream.
  func sayGoodbye() {
    let drainedByNs = clock.nowNs + Self.drainLimitNs
    while let client = current, client.wantsOutput, clock.nowNs < drainedByNs {
      serve(untilNs: drainedByNs)
    }
    current?.endOutput()
    // Input that is not read would turn the end of the stream into a reset, which loses what is on its way.
    let endedByNs = clock.nowNs + Self.farewellLimitNs
    while current != nil, clock.nowNs < endedByNs { serve(untilNs: endedByNs) }
  }

  private func watch(
    _ descriptor: Int32, input: Bool = true, output: Bool = false
  ) -> chost_watch {
    chost_watch(
      descriptor: descriptor, wants_input: input, wants_output: output, input: false,
      output: false)
  }

  private func accept() {
    let descriptor = chost_accept(listener)
    if descriptor < 0 { return }
    let connection = ControlConnection(
      descriptor: descriptor, acceptedNs: clock.nowNs, reader: reader)
    if connections.count < Self.mostConnections { connections.append(connection) }
  }

  private func dropClosed() {
    let oldestNs = clock.nowNs - Self.helloLimitNs
    connections.removeAll { connection in
      !connection.isOpen || !connection.isAdmitted && connection.acceptedNs < oldestNs
    }
  }

  private func answer(_ line: ArraySlice<UInt8>, _ client: ControlConnection) {
    if !client.isOpen || client.closesWhenSent { return }
    let (id, command) = ControlCommand.read(line)
    if case .hello(let token) = command { return admit(client, showing: token, id: id) }
    if !client.isAdmitted { return }  // before `hello` nothing is answered
    switch command {
    case .start(let order): start(order, client, id)
    case .resume(let launch, let sequence): resume(launch, sequence, client, id)
    case .stop:
      client.reply(ControlReply("stop", id: id))
      desk.stop()
    case .status: client.reply(ControlReply("status", id: id, desk.writeStatus))
    case .hello, .malformed: client.reply(ControlReply("error", id: id, error: "command"))
    }
  }

  private func admit(_ client: ControlConnection, showing shown: String, id: Int?) {
    guard isToken(shown) else {
      client.reply(ControlReply("hello", id: id, error: "token"))
      client.closesWhenSent = true
      return
    }
    for other in connections where other.isAdmitted && other !== client { other.close() }
    client.isAdmitted = true
    client.reply(
      ControlReply("hello", id: id) { line in
        line.field("protocol", AppIdentity.protocolVersion)
        desk.writeIdentity(to: &line)
      })
  }

  /// Compares without stopping at the first difference, whose time would tell how far it was right.
  private func isToken(_ shown: String) -> Bool {
    let bytes = Array(shown.utf8)
    var difference = bytes.count ^ token.count
    for (left, right) in zip(bytes, token) { difference |= Int(left ^ right) }
    return difference == 0
  }

  private func start(_ order: JSONFields, _ client: ControlConnection, _ id: Int?) {
    if desk.isStarted {
      return client.reply(ControlReply("start", id: id, error: "started"))
    }
    do {
      try desk.start(order)
      client.reply(ControlReply("start", id: id))
      client.stream(from: 0)
    } catch {
      client.reply(
        ControlReply("start", id: id, error: "scenario") { $0.field("message", "\(error)") })
    }
  }

  private func resume(
    _ launch: String, _ sequence: Int, _ client: ControlConnection, _ id: Int?
  ) {
    guard launch == reader.journal.launch.description else {
      return client.reply(ControlReply("resume", id: id, error: "launch"))
    }
    guard let offset = reader.offset(after: sequence) else {
      return client.reply(ControlReply("error", id: id, error: "command"))
    }
    client.reply(ControlReply("resume", id: id))
    client.stream(from: offset)
  }
}
