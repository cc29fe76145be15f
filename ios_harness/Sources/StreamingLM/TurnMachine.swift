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
  /// State sets that are made and not released, the oldest first; audits apart.
  private var liveStates: [Int] = []
  private var lastPrediction: Prediction?
  private var watch = OutputWatch()

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

  /// Bytes of one state set.
  public var stateBytes: Int { engine.stateBytes }

  /// Surfaces that the engine may hold.
  public var surfaceCount: Int { engine.surfaceCount }

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
    watch = OutputWatch()
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

  /// Has the model loaded again before the next prediction that finds rows (contract R9).
  public func requestReload() { window.requestReload() }

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
    if engine.wantsReload { window.requestReload() }
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
    case .trim(let trim): try sink(.trimming(trim, state: liveState))
    case .evict(let eviction):
      try sink(.evicting(eviction, state: liveState, warnings: signals.openWarnings))
    case .release(let purpose): try release(purpose, sink)
    case .make(let purpose): try make(purpose, sink)
    case .load: try load(sink)
    case .predict(let chunk): try predict(chunk, sink)
    case .sample: try sample(sink)
    case .hold: clock.sleep(untilNs: clock.nowNs + Self.backgroundPauseNs)
    case .settled(let upheaval): try sink(.settled(upheaval))
    case .end(let reason): try sink(.ended(reason, generated: window.generated))
    }
  }

  private var liveState: Int { liveStates.last ?? stateCount }

  private func release(_ purpose: StatePurpose, _ sink: Sink) throws {
    let state = liveStates.isEmpty ? stateCount : liveStates.removeFirst()
    engine.releaseState(for: purpose)
    // Warnings until the release is done belong to the eviction that made it.
    if purpose == .evict || purpose == .background { signals.answerWarnings() }
    try sink(.released(change(purpose, of: state)))
  }

  private func make(_ purpose: StatePurpose, _ sink: Sink) throws {
    do throws(EngineError) { try engine.makeState(for: purpose) } catch {
      try sink(.faulted(error, phase: window.phase))
      return window.makingFailed()
    }
    stateCount += 1
    liveStates.append(stateCount)
    try sink(.made(change(purpose, of: stateCount)))
  }

  private func change(_ purpose: StatePurpose, of state: Int) -> StateChange {
    StateChange(id: state, purpose: purpose, bytes: engine.stateBytes)
  }

  private func load(_ sink: Sink) throws {
    try sink(.loading)
    let startNs = clock.nowNs
    let load: ModelLoad
    do throws(EngineError) { load = try engine.reload() } catch { return try fail(error, sink) }
    try sink(.loaded(load, tookNs: clock.nowNs - startNs))
  }

  private func predict(_ chunk: Chunk, _ sink: Sink) throws {
    let startNs = clock.nowNs
    do throws(EngineError) { try engine.predict(chunk) } catch { return try fail(error, sink) }
    let span = engine.lastSpan ?? PredictionSpan(startNs: startNs, endNs: clock.nowNs)
    let prediction = Prediction(chunk: chunk, state: liveState, span: span)
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
      token: token, rows: window.rows, place: window.generated, isEnd: isEnd,
      prediction: lastPrediction)
    window.sampled(token)
    try sink(.sampled(sample))
    if let finding = watch.observe(token) { try sink(.suspected(finding)) }
  }

  private func fail(_ error: EngineError, _ sink: Sink) throws {
    try sink(.faulted(error, phase: window.phase))
    window.failed()
    if error == .surfaces { window.requestReload() }
  }
}

extension TurnMachine {
  /// Compares the state set in use with one that is fed the whole context anew (contract R9). Call it between two
  /// steps; the context is not touched. Whether memory allows a second state set is the caller's business.
  ///
  /// - Parameter sink: Takes the events in.
  /// - Returns: false when there is nothing to compare: no rows, or an engine that holds no second state set.
  /// - Throws: What the sink throws.
  public func audit(_ sink: Sink) throws -> Bool {
    guard window.holdsRows, let engine = engine as? any AuditingEngine else { return false }
    do throws(EngineError) { try engine.beginAudit() } catch {
      try sink(.auditFailed(error))
      return true
    }
    stateCount += 1
    let state = stateCount
    try sink(.made(change(.audit, of: state)))
    switch try feedAudit(engine, state, sink) {
    case .success(let parity): try sink(.audited(parity, rows: window.rows, state: state))
    case .failure(let error): try sink(.auditFailed(error))
    }
    engine.endAudit()
    try sink(.released(change(.audit, of: state)))
    return true
  }

  private func feedAudit(
    _ engine: any AuditingEngine, _ state: Int, _ sink: Sink
  ) throws -> Result<Parity, EngineError> {
    let ids = window.context
    for start in stride(from: 0, to: ids.count, by: window.plan.chunk) {
      let end = min(start + window.plan.chunk, ids.count)
      let chunk = Chunk(ids: Array(ids[start..<end]), start: start, purpose: .audit)
      let startNs = clock.nowNs
      do throws(EngineError) { try engine.predictAudit(chunk) } catch { return .failure(error) }
      let span = PredictionSpan(startNs: startNs, endNs: clock.nowNs)
      try sink(.prefilled(Prediction(chunk: chunk, state: state, span: span)))
    }
    do throws(EngineError) { return .success(try engine.compareAudit()) } catch {
      return .failure(error)
    }
  }
}
