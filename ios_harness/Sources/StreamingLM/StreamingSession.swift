// SPDX-License-Identifier: Apache-2.0

import Dispatch
import HarnessCore
import Synchronization

/// What a view shows of a turn.
public enum StreamElement: Sendable, Equatable {
  /// A token was sampled; `text` is what it completes, maybe nothing.
  case token(Token, text: String)
  /// A trim or an eviction happened: show the notice.
  case notice(ContextWindow.Upheaval)
  /// The last element of every turn.
  case ended(StopReason, generated: Int)
}

/// Why a turn cannot be streamed.
public enum SessionError: Error, Equatable {
  /// Another turn of this session is still running.
  case turnInProgress
}

/// One conversation as asynchronous streams, for user interfaces.
///
/// The session owns the engine; its turns run on a queue of their own, because a prediction of 30 ms must not sit on
/// Swift's shared pool. Elements pass through a bounded channel: a slow consumer suspends the turn between two
/// predictions. A consumer that leaves cancels the turn. Tokens that follow each other faster than a screen is drawn are
/// handed over some at a time, the others at once.
public actor StreamingSession {
  private let machine: TurnMachine
  private let text: any TokenText
  private let executor = QueueExecutor(label: "streaming-lm")
  private var assembler = UTF8Assembler()
  private var isBusy = false
  private let clock = LaunchClock()
  private var handedOverNs: Int64 = 0

  /// Tokens wait for others no longer than half a frame of a fast screen.
  private static let gatherNs: Int64 = 4_000_000
  /// Elements that may wait for the consumer.
  private static let channelCapacity = 16

  /// What other threads have to say: memory warnings and the foreground.
  public nonisolated let signals = TurnSignals()

  /// The session's own queue.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// - Parameters:
  ///   - engine: Owned by the session from here on.
  ///   - plan: What the context window is for.
  ///   - text: Turns ids into text.
  public init(
    engine: sending any InferenceEngine, plan: ContextPlan, text: any TokenText = DecimalText()
  ) {
    machine = TurnMachine(engine: engine, plan: plan, signals: signals, clock: clock)
    self.text = text
  }

  /// Rows of the state set.
  public var rows: Int { machine.window.rows }

  /// Streams one turn.
  ///
  /// - Parameters:
  ///   - prompt: Ids of the user's prompt.
  ///   - limit: Most tokens generated; nil for none.
  /// - Returns: Elements, of which the last is `.ended`, unless the consumer leaves. Iterating throws
  ///   `SessionError` when another turn of this session runs.
  public nonisolated func turn(
    prompt: [Token], limit: Int?
  ) -> AsyncThrowingStream<StreamElement, any Error> {
    let channel = BoundedChannel<Result<StreamElement, SessionError>>(
      capacity: Self.channelCapacity)
    let task = Task { await self.play(prompt, limit, into: channel) }
    let subscription = Subscription(channel: channel, task: task)
    return AsyncThrowingStream { try await subscription.next() }
  }

  private func play(
    _ prompt: [Token], _ limit: Int?,
    into channel: BoundedChannel<Result<StreamElement, SessionError>>
  ) async {
    defer { channel.finish() }
    if isBusy { return await channel.send(.failure(.turnInProgress)) }
    isBusy = true
    defer { isBusy = false }
    signals.isCancelled = false
    var elements = step(opening: prompt, limit)
    while let current = elements {
      for element in current.elements {
        await channel.send(.success(element), isUrgent: isUrgent(element))
      }
      if !current.isToken { channel.flush() }  // what follows may take long
      // A consumer that keeps up never suspends the turn; yielding takes two switches of threads.
      if executor.hasWaitingJobs { await Task.yield() }
      if Task.isCancelled { signals.isCancelled = true }
      elements = step()
    }
  }

  /// Whether an element may not wait for the next one.
  private func isUrgent(_ element: StreamElement) -> Bool {
    let nowNs = clock.nowNs
    if case .token = element, nowNs - handedOverNs < Self.gatherNs { return false }
    handedOverNs = nowNs
    return true
  }

  /// What one step of a turn gave.
  private struct StepResult {
    let elements: [StreamElement]
    /// Whether it was a token or a prediction: the next step takes about as long.
    let isToken: Bool
  }

  /// Opens a turn, or does its next step; nil when the turn is over. Never suspends.
  private func step(opening prompt: [Token]? = nil, _ limit: Int? = nil) -> StepResult? {
    var events: [TurnEvent] = []
    var isOver = false
    do {  // the sink does not throw, hence the machine does not
      if let prompt {
        try machine.begin(prompt: prompt, limit: limit) { events.append($0) }
      } else {
        isOver = try !machine.advance { events.append($0) }
      }
    } catch { isOver = true }
    if isOver { return nil }
    return StepResult(
      elements: events.compactMap(element),
      isToken: events.allSatisfy { if case .sampled = $0 { true } else { false } })
  }

  private func element(of event: TurnEvent) -> StreamElement? {
    switch event {
    case .opened:
      assembler = UTF8Assembler()  // a character that the last turn left incomplete is never shown
      return nil
    case .sampled(let sample):
      let bytes = sample.isEnd ? [] : text.bytes(of: sample.token, at: sample.place)
      return .token(sample.token, text: assembler.push(bytes))
    case .settled(let upheaval): return .notice(upheaval)
    case .ended(let reason, let generated): return .ended(reason, generated: generated)
    default: return nil
    }
  }
}

/// The consumer's end of a turn. `AsyncThrowingStream(unfolding:)` has no `onCancel`: dropping the stream drops its
/// closure, and with it this object, which cancels the turn.
private final class Subscription: Sendable {
  private let channel: BoundedChannel<Result<StreamElement, SessionError>>
  private let task: Task<Void, Never>

  init(channel: BoundedChannel<Result<StreamElement, SessionError>>, task: Task<Void, Never>) {
    self.channel = channel
    self.task = task
  }

  deinit {
    task.cancel()
    channel.finish()
  }

  func next() async throws -> StreamElement? {
    let result = await withTaskCancellationHandler {
      await channel.next()
    } onCancel: {
      task.cancel()
    }
    return try result?.get()
  }
}

/// A serial queue as an actor's executor.
private final class QueueExecutor: SerialExecutor {
  private let queue: DispatchQueue
  private let waiting = Atomic<Int>(0)

  init(label: String) { queue = DispatchQueue(label: label, qos: .userInitiated) }

  /// Whether somebody waits for the job that runs now to suspend.
  var hasWaitingJobs: Bool { waiting.load(ordering: .relaxed) > 0 }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    waiting.add(1, ordering: .relaxed)
    queue.async {
      self.waiting.subtract(1, ordering: .relaxed)
      job.runSynchronously(on: self.asUnownedSerialExecutor())
    }
  }
}
