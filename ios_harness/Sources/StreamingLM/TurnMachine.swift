// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// Carries out what a `ContextWindow` plans, on one engine, and reports every event to a sink.
///
/// Synchronous and single-threaded: the thread that calls it owns the engine and its state set. What other threads
/// have to say reaches it through `TurnSignals`. The sink is called before the act it announces, and an error it
/// throws ends the call unchanged.
public final class TurnMachine {
  /// Takes events in.
  public typealias Sink = (TurnEvent) throws -> Void

  /// The plan and its context.
  public private(set) var window: ContextWindow
  /// What other threads have to say.
  public let signals: TurnSignals

  private let engine: any InferenceEngine
  private let clock: LaunchClock
  private var stateCount = 0
  private var lastPrediction: Prediction?

  /// How long to look away while the app is in the background, where iOS suspends us anyway.
  private static let backgroundPauseNs: Int64 = 10_000_000

  /// - Parameters:
  ///   - engine: Owned by the machine from here on.
  ///   - plan: What the context window is for.
  ///   - signals: What other threads have to say.
  ///   - clock: Times of predictions.
  public init(
    engine: any InferenceEngine, plan: ContextPlan, signals: TurnSignals, clock: LaunchClock
  ) {
    self.engine = engine
    window = ContextWindow(plan: plan)
    self.signals = signals
    self.clock = clock
  }

  /// Plays one turn to its end.
  ///
  /// - Parameters:
  ///   - prompt: Ids of the user's prompt.
  ///   - limit: Most tokens generated; nil for none.
  ///   - sink: Takes the events in.
  /// - Throws: What the sink throws.
  public func run(prompt: [Token], limit: Int?, _ sink: Sink) throws {
    try begin(prompt: prompt, limit: limit, sink)
    while try advance(sink) {}
  }

  /// Opens a turn; `advance` plays it.
  public func begin(prompt: [Token], limit: Int?, _ sink: Sink) throws {
    try settle(sink)
    try sink(.opened(window.begin(prompt: prompt, limit: limit), limit: limit))
  }

  /// Answers warnings that arrived between turns.
  public func settle(_ sink: Sink) throws { while try advance(sink) {} }

  /// Ends the conversation between turns: the state set goes.
  public func endConversation(_ sink: Sink) throws {
    window.endConversation()
    try settle(sink)
  }

  /// Reports whether available memory is under the headroom (contract R13).
  public func report(isMemoryLow: Bool) { window.report(isMemoryLow: isMemoryLow) }

  /// Does one step.
  ///
  /// - Returns: Whether there was one; false when the turn is over.
  public func advance(_ sink: Sink) throws -> Bool {
    absorbSignals()
    guard let step = window.next() else { return false }
    try perform(step, sink)
    return true
  }

  private func absorbSignals() {
    if signals.isCancelled { window.cancel() }
    window.isHeld = signals.isInBackground
    if window.isHeld, window.isStateMade {
      window.requestEviction(.background)
    } else if signals.isWarned {
      if window.holdsRows {
        window.requestEviction(.memoryWarning)
      } else if window.isStateless {
        signals.answerWarnings()  // R7: there is nothing to evict
      }
    }
  }

  private func perform(_ step: ContextWindow.Step, _ sink: Sink) throws {
    switch step {
    case .trim(let trim): try sink(.trimming(trim, state: stateCount))
    case .evict(let eviction):
      try sink(.evicting(eviction, state: stateCount, warnings: signals.openWarnings))
    case .release(let purpose): try release(purpose, sink)
    case .make(let purpose): try make(purpose, sink)
    case .predict(let chunk): try predict(chunk, sink)
    case .sample: try sample(sink)
    case .hold: clock.sleep(untilNs: clock.nowNs + Self.backgroundPauseNs)
    case .settled(let upheaval): try sink(.settled(upheaval))
    case .end(let reason): try sink(.ended(reason, generated: window.generated))
    }
  }

  private func release(_ purpose: StatePurpose, _ sink: Sink) throws {
    engine.releaseState(for: purpose)
    // Warnings until the release is done belong to the eviction that made it.
    if purpose == .evict || purpose == .background { signals.answerWarnings() }
    try sink(.released(change(purpose)))
  }

  private func make(_ purpose: StatePurpose, _ sink: Sink) throws {
    do throws(EngineError) { try engine.makeState(for: purpose) } catch {
      try sink(.faulted(error, phase: window.phase))
      return window.makingFailed()
    }
    stateCount += 1
    try sink(.made(change(purpose)))
  }

  private func change(_ purpose: StatePurpose) -> StateChange {
    StateChange(id: stateCount, purpose: purpose, bytes: engine.stateBytes)
  }

  private func predict(_ chunk: Chunk, _ sink: Sink) throws {
    let startNs = clock.nowNs
    do throws(EngineError) { try engine.predict(chunk) } catch { return try fail(error, sink) }
    let prediction = Prediction(
      chunk: chunk, state: stateCount, startNs: startNs, endNs: clock.nowNs)
    lastPrediction = prediction
    window.predicted()
    if chunk.purpose != .decode { try sink(.prefilled(prediction)) }
  }

  private func sample(_ sink: Sink) throws {
    guard let lastPrediction else { return window.failed() }
    let token: Token
    do throws(EngineError) { token = try engine.sample() } catch { return try fail(error, sink) }
    let isEnd = window.plan.endIDs.contains(token)
    let sample = Sample(
      token: token, rows: window.rows, isEnd: isEnd, prediction: lastPrediction)
    window.sampled(token)
    try sink(.sampled(sample))
  }

  private func fail(_ error: EngineError, _ sink: Sink) throws {
    try sink(.faulted(error, phase: window.phase))
    window.failed()
  }
}
