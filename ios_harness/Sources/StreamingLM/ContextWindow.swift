// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// The token-level contract of one conversation at a time, as a pure value: it is told what happened and answers
/// what is next. It holds no engine, no clock and no memory but ids.
///
/// `begin` opens a turn; then `next` names one step after the other. Some steps want an answer before the next:
/// `.predict` is followed by `predicted()` or `failed()`, `.sample` by `sampled(_:)` or `failed()`. Warnings,
/// cancellation, low memory and reloads may be reported at any time and act where the contract says.
public struct ContextWindow: Sendable {
  /// What the owner of the engine is to do next.
  public enum Step: Sendable, Equatable {
    /// Announce the trim; its release follows.
    case trim(Trim)
    /// Announce the eviction; its release follows.
    case evict(Eviction)
    /// Release the state set.
    case release(StatePurpose)
    /// Make a state set.
    case make(StatePurpose)
    /// Load the model again (contract R9).
    case load
    /// Run one prediction, then call `predicted()` or `failed()`.
    case predict(Chunk)
    /// Sample from the last prediction, then call `sampled(_:)` or `failed()`.
    case sample
    /// No prediction may run now: wait and ask again (contract R12).
    case hold
    /// The trim or the eviction is done: show its notice.
    case settled(Upheaval)
    /// The turn is over.
    case end(StopReason)
  }

  /// What a notice is for.
  public enum Upheaval: Sendable, Equatable {
    /// A trim.
    case trim
    /// An eviction.
    case eviction
  }

  /// What the window was built for.
  public let plan: ContextPlan
  /// C: ids the state set has consumed.
  public internal(set) var context: [Token] = []
  /// Ids sampled last, shown and not fed yet: at most one.
  public internal(set) var pending: [Token] = []
  /// Whether a state set is made.
  public internal(set) var isStateMade = false
  /// Whether predictions are held back because the app is away from the foreground.
  public var isHeld = false
  /// Tokens sampled in this turn.
  public internal(set) var generated = 0

  /// L: every id accepted in the conversation.
  var accepted: [Token] = []
  var stage = Stage.idle
  var backlog: [Step] = []
  var turn = Turn()
  var requests = Requests()
  var nextStatePurpose = StatePurpose.conversation
  /// A trim was announced and its notice was not.
  var owesTrimNotice = false
  /// A trim has answered that memory is low.
  var isLowMemoryAnswered = false
  /// Evictions since the last sample of the turn (contract R8).
  var dryEvictions = 0

  /// What the turn is made of.
  struct Turn: Sendable {
    var used: [Token] = []
    /// Ids of it that were pending.
    var carried: [Token] = []
    /// Length of L before the turn.
    var start = 0
    /// L's pin as it was before the turn: what R8 puts in front of a restart.
    var head: [Token] = []
    var limit: Int?
  }

  /// What was reported and has not acted yet.
  struct Requests: Sendable {
    var eviction: Eviction.Reason?
    var isCancelled = false
    var isMemoryLow = false
    var wantsReload = false
  }

  /// Where the turn stands.
  enum Stage: Sendable, Equatable {
    case idle
    /// R3: before the turn's first chunk.
    case opening
    case feeding(Feed)
    /// Logits are in hand.
    case sampling
    /// R2: a token was sampled.
    case judging(Token)
  }

  /// Ids on their way into the state set, chunk by chunk.
  struct Feed: Sendable, Equatable {
    let ids: [Token]
    let purpose: PredictionPurpose
    var fed = 0
    /// The token that is decoded afterwards; nil while the prompt is ingested.
    let decodesNext: Token?

    var isDone: Bool { fed == ids.count }
  }

  /// - Parameter plan: What the window is for.
  public init(plan: ContextPlan) { self.plan = plan }

  /// n: rows of the state set.
  public var rows: Int { context.count }

  /// Whether the state set holds rows that an eviction would release.
  public var holdsRows: Bool { isStateMade && rows > 0 }

  /// Whether there is no state set and none is on its way to be remade: a warning finds nothing then (contract R7).
  public var isStateless: Bool {
    if isStateMade || !backlog.isEmpty { return false }
    guard case .feeding(let feed) = stage else { return true }
    return feed.purpose != .trim && feed.purpose != .reload
  }

  /// What the pipeline is doing: `prefill` through the eviction that may follow the turn's first sample.
  public var phase: PipelinePhase {
    switch stage {
    case .idle: .idle
    case .opening: .prefill
    case .feeding(let feed): feed.decodesNext == nil ? .prefill : .decode
    case .sampling: generated == 0 ? .prefill : .decode
    case .judging: generated <= 1 ? .prefill : .decode
    }
  }

  /// Opens a turn (contract R2 and R4).
  ///
  /// - Parameters:
  ///   - prompt: Ids of the user's prompt; a turn with nothing to feed is refused.
  ///   - limit: Most tokens generated; nil for none.
  /// - Returns: What will be fed. When the prompt is refused, `used` is empty and the only step is the end.
  public mutating func begin(prompt: [Token], limit: Int?) -> TurnOpening {
    generated = 0
    dryEvictions = 0
    requests.isCancelled = false
    let isLost = !accepted.isEmpty && context.isEmpty && plan.rules.losesPendingWithContext
    let carried = isLost || !plan.rules.carriesPending ? [] : pending
    let room = plan.rules.promptRoom(plan.budget, plan.pin, accepted.isEmpty)
    let whole = carried + prompt
    let isTooLong = whole.count > room
    if whole.isEmpty || isTooLong && plan.longPrompt == .refuse {
      backlog.append(.end(.refused))
      return TurnOpening(prompt: prompt, used: [], carried: 0, askedCount: whole.count)
    }
    turn = Turn(
      used: isTooLong ? truncated(whole, to: room) : whole, carried: isTooLong ? [] : carried,
      start: accepted.count, head: Array(accepted.prefix(plan.pin)), limit: limit)
    pending = []
    accepted += turn.used
    stage = .opening
    return TurnOpening(
      prompt: prompt, used: turn.used, carried: turn.carried.count, askedCount: whole.count)
  }

  /// R4: the pin, when it is not in the context yet, and the last ids that fit.
  private func truncated(_ ids: [Token], to room: Int) -> [Token] {
    let pin = accepted.isEmpty ? plan.pin : 0
    return Array(ids.prefix(pin) + ids.suffix(room - pin))
  }

  /// Ends the conversation between turns; within one it does nothing. Take the steps that follow before the next turn.
  public mutating func endConversation() {
    guard stage == .idle else { return }
    if isStateMade { backlog += drop(.end) }
    accepted = []
    pending = []
    nextStatePurpose = .conversation
  }

  /// The prediction of the last step has ended.
  public mutating func predicted() {
    guard case .feeding(var feed) = stage else { return }
    let chunk = nextChunk(of: feed)
    context += chunk.ids
    feed.fed += chunk.ids.count
    if feed.purpose == .decode, plan.rules.acceptsFedTokens { accepted += chunk.ids }
    let givesLogits = feed.purpose == .decode || feed.purpose == .turn
    stage = feed.isDone && givesLogits ? .sampling : .feeding(feed)
  }

  /// The model sampled a token.
  public mutating func sampled(_ token: Token) {
    guard stage == .sampling else { return }
    generated += 1
    if plan.rules.sampleEndsDrought { dryEvictions = 0 }
    stage = .judging(token)
  }

  /// The turn is left without using the logits in hand: nothing is pending, what was consumed stays.
  public mutating func abandonSample() { if stage == .sampling { stage = .idle } }

  /// The state set of the last step could not be made.
  public mutating func makingFailed() {
    isStateMade = false
    failed()
  }

  /// Reports that the state must go (contract R7 and R12).
  public mutating func requestEviction(_ reason: Eviction.Reason) { requests.eviction = reason }

  /// Reports that the consumer wants no more of this turn.
  public mutating func cancel() { if stage != .idle { requests.isCancelled = true } }

  /// Reports whether available memory is under the headroom (contract R13). A fall is answered by one trim.
  public mutating func report(isMemoryLow: Bool) {
    requests.isMemoryLow = isMemoryLow
    if !isMemoryLow { isLowMemoryAnswered = false }
  }

  /// Reports that the model was loaded again (contract R9).
  public mutating func requestReload() { requests.wantsReload = true }

  /// The last step failed: the state goes and the turn ends with `fault` (contract R9).
  public mutating func failed() {
    settleOwedNotice()
    if holdsRows {
      evict(.fault)
    } else if isStateMade {
      backlog += drop(.evict)
      nextStatePurpose = .resume
    }
    finish(.fault)
  }
}
