// SPDX-License-Identifier: Apache-2.0

import CHost
import Synchronization

/// The append-only record file of one launch: numbered, chained, written before the act it announces.
///
/// Any thread may record. Lines reach the kernel by `write(2)` before `record` returns, so they survive a
/// kill of the process; synced ones survive a power cut. Records after the last one are dropped.
public final class Journal: Sendable {
  /// What it takes for a record to count as written.
  public enum Durability: Sendable {
    /// In the kernel: survives the process.
    case process
    /// On the drive: survives the machine.
    case machine
  }

  /// Records that are numbered and not written: a fault on purpose, for a host that must notice it.
  public enum Loss: Sendable, Equatable {
    /// A sound journal.
    case none
    /// The first `sample` from a number on.
    case oneSample(from: UInt64)
    /// All from a number on.
    case everything(from: UInt64)
  }

  /// Every record whose number is a multiple of this carries the chain; the protocol asks for 64.
  public static let chainInterval: UInt64 = 32

  /// The file, relative to the working directory.
  public let path: String
  /// The clock of the records' `t_ns`.
  public let clock: LaunchClock
  /// The launch whose records these are.
  public let launch: LaunchIdentifier

  private let didAppend: @Sendable () -> Void
  private let descriptor: Int32
  private let committed = Atomic<Int>(0)
  private let sequence = Atomic<UInt64>(0)
  private let state: Mutex<State>

  private struct State {
    var line = LineBuffer()
    var chain = SHA256()
    var isEnded = false
    var loss: Loss

    /// Whether a record is lost.
    mutating func loses(_ kind: StaticString, _ number: UInt64) -> Bool {
      switch loss {
      case .none: return false
      case .everything(let first): return number >= first
      case .oneSample(let first):
        guard number >= first, "\(kind)" == "sample" else { return false }
        loss = .none
        return true
      }
    }
  }

  /// Makes the file.
  ///
  /// - Parameters:
  ///   - folder: Made when missing.
  ///   - launch: Names the file and stands in every record.
  ///   - clock: The launch's clock.
  ///   - loss: Records that are not written.
  ///   - didAppend: Called after each record, on the thread that recorded.
  /// - Throws: `SystemError` when the folder or the file cannot be made.
  public init(
    folder: String, launch: LaunchIdentifier, clock: LaunchClock, loss: Loss = .none,
    didAppend: @escaping @Sendable () -> Void = {}
  ) throws(SystemError) {
    self.didAppend = didAppend
    state = Mutex(State(loss: loss))
    try Files.makeFolder(folder)
    let path = "\(folder)/\(launch).ndjson"
    descriptor = try SystemError.check(chost_open_append(path), "open \(path)")
    self.path = path
    self.launch = launch
    self.clock = clock
  }

  deinit { chost_close(descriptor) }

  /// Bytes of whole records in the file.
  public var committedBytes: Int { committed.load(ordering: .acquiring) }

  /// Number of the last record; 0 before the first.
  public var lastSequence: UInt64 { sequence.load(ordering: .acquiring) }

  /// Appends one record.
  ///
  /// - Parameters:
  ///   - kind: The record's kind.
  ///   - durability: `machine` waits for the drive.
  ///   - isLast: No record follows; it carries the chain.
  ///   - fill: Writes the kind's own fields. It runs under the journal's lock: it must not record.
  /// - Returns: The record's number, or nil when the last record has been written already.
  /// - Throws: `SystemError` when the file cannot be written.
  @discardableResult
  public func record(
    _ kind: StaticString, _ durability: Durability = .process, isLast: Bool = false,
    _ fill: (inout LineBuffer) -> Void
  ) throws(SystemError) -> UInt64? {
    try state.withLock { (state) throws(SystemError) -> UInt64? in
      if state.isEnded { return nil }
      state.isEnded = isLast
      let number = sequence.load(ordering: .relaxed) + 1
      let isLost = state.loses(kind, number)
      let isChained = !isLost && (isLast || number % Self.chainInterval == 0)
      compose(kind, number, chained: isChained, isLost: isLost, in: &state, fill)
      if isLost {
        sequence.store(number, ordering: .releasing)
        return number
      }
      do throws(SystemError) { try append(state.line.bytes, durability) } catch {
        state.isEnded = true  // what follows a torn line could not be told from it
        throw error
      }
      // Numbered before it is shown: whoever reads the line must not be told that it is not there.
      sequence.store(number, ordering: .releasing)
      committed.add(state.line.bytes.count, ordering: .releasing)
      didAppend()
      return number
    }
  }

  private func compose(
    _ kind: StaticString, _ number: UInt64, chained: Bool, isLost: Bool, in state: inout State,
    _ fill: (inout LineBuffer) -> Void
  ) {
    state.line.begin()
    state.line.field("launch", launch.description)
    state.line.field("seq", number)
    state.line.field("t_ns", clock.nowNs)
    state.line.field("kind", "\(kind)")
    fill(&state.line)
    if chained {
      state.line.field("chain", String(Hexadecimal.text(of: state.chain.finalize()).prefix(16)))
      state.chain = SHA256()
    }
    state.line.end()
    if !chained, !isLost { state.chain.update(state.line.bytes) }
  }

  private func append(_ line: [UInt8], _ durability: Durability) throws(SystemError) {
    try SystemError.check(
      chost_write_all(descriptor, line, Int64(line.count)), "write \(path)")
    if durability == .machine {
      try SystemError.check(chost_sync(descriptor), "sync \(path)")
    }
  }
}
