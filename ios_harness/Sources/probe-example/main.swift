// SPDX-License-Identifier: Apache-2.0

// An app with a pipeline of its own, made visible to `fleet soak` by SoakProbe. The pipeline is a toy: the next token is
// a sum over the context. On an iPhone `VirtualPhone` is `ApplePhone()`, and `PhoneEvents` delivers the conditions.

import CHost
import HarnessCore
import HostPlatform
import SoakProbe
import StreamingLM

let (budget, stateBytes) = (64, 64 * 64)

@Sendable func soak(_ session: ProbeSession) throws {
  // Ids that the state has consumed, ids of this turn, and the one that was sampled and not fed.
  var (context, turn, pending) = ([Token](), [Token](), [Token]())
  // Why the next state will be made; nil while there is one.
  var nextState: StatePurpose? = .conversation
  var (startNs, generated): (Int64, Int) = (0, 0)
  func feed(_ ids: [Token], _ purpose: PredictionPurpose) throws {
    if let nextState { try session.stateMade(bytes: stateBytes, for: nextState) }
    nextState = nil
    let chunk = Chunk(ids: ids, start: context.count, purpose: purpose)
    startNs = session.clock.nowNs
    session.clock.sleep(untilNs: startNs + 1_000_000)  // the work of a prediction
    context += ids
    if purpose != .decode { try session.prefilled(chunk, startNs: startNs) }
  }
  func drop(_ purpose: StatePurpose, next: StatePurpose) throws {
    try session.stateReleased(for: purpose)
    (context, nextState) = ([], next)
  }
  func trimIfDue(for incoming: Int) throws {
    if context.isEmpty || context.count + incoming <= budget { return }
    let kept = Array(context.suffix(min(budget / 2, budget - incoming)))
    try session.willTrim(before: context.count, kept: kept, incoming: incoming)
    try drop(.trim, next: .trim)
    try feed(kept, .trim)
    try session.noticeShown(for: .trim)
  }
  func evictIfWarned() throws {
    if !session.signals.isWarned { return }
    if context.isEmpty { return session.signals.answerWarnings() }
    try session.willEvict(before: context.count)
    try drop(.evict, next: .resume)
    try session.noticeShown(for: .eviction)
  }
  try session.modelLoaded(tookMs: 1, computeUnits: "none", isCold: true)
  while !session.isOver {
    try evictIfWarned()
    let (prompt, isConversationStart) = session.nextTurn()
    if isConversationStart, nextState == nil { try drop(.end, next: .conversation) }
    if isConversationStart || context.isEmpty { pending = [] }
    turn = pending + prompt
    try session.turnBegins(prompt: prompt, used: turn, carried: pending.count)
    try trimIfDue(for: turn.count)
    try feed(turn, .turn)
    generated = 0
    while true {
      let token = 1 + context.reduce(7) { ($0 &* 31 &+ $1) & 0xFFFF } % 999
      try session.sampled(token, rows: context.count, isEnd: false, startNs: startNs)
      (pending, generated) = ([token], generated + 1)
      try evictIfWarned()
      if generated == session.turnLimit || session.isOver { break }
      try trimIfDue(for: 1)
      if context.isEmpty { try feed(Array(turn.suffix(budget / 2)), .resume) }
      try feed(pending, .decode)
      turn += pending
    }
    try session.turnEnds(generated == session.turnLimit ? .turnLimit : .cancelled)
  }
  if nextState == nil { try drop(.end, next: .conversation) }
}

let model = ProbeModel(
  quantization: .int4, weightsBytes: 1 << 20, capacity: 128, vocabularySize: 1000, endIDs: [0],
  chunk: 32)
let environment = Environment.ofProcess(names: VirtualPhone.variables)
let probe = try SoakProbe(
  app: ProbeApp(name: "probe-example", version: "1.0", budgetTokens: budget, model: model),
  platform: VirtualPhone(environment), container: environment["HOME"] ?? ".", pipeline: soak)
try ConditionsChannel.watch(0) { probe.deliver($0) }
let path = environment["FLEET_SOCKET"] ?? "fleet.sock"
let listener = try SystemError.check(chost_listen_unix(path), "listen")
_ = chost_write_all(1, Array("fleet-harness listening\n".utf8), 24)
chost_exit_now(try probe.serve(listener: listener, token: environment["FLEET_TOKEN"] ?? ""))
