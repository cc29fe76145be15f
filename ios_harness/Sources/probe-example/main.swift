// SPDX-License-Identifier: Apache-2.0

// An app with a pipeline of its own, made visible to `fleet soak` by SoakProbe. The pipeline is a toy: the next token is
// a sum over the context. On an iPhone `VirtualPhone` is `ApplePhone()`, and `PhoneEvents` delivers the conditions.

import CHost
import HarnessCore
import HostPlatform
import SoakProbe
import StreamingLM

let budget = 64
let stateBytes = budget * 64

@Sendable func soak(_ session: ProbeSession) throws {
  var context: [Token] = []
  func feed(_ ids: [Token], _ purpose: PredictionPurpose) throws {
    let chunk = Chunk(ids: ids, start: context.count, purpose: purpose)
    try session.prefilled(chunk, startNs: session.clock.nowNs)
    context += ids
  }
  func shrink(_ upheaval: ContextWindow.Upheaval) throws {
    let kept = upheaval == .trim ? Array(context.suffix(budget / 4)) : []
    if upheaval == .trim { try session.willTrim(before: context.count, kept: kept, incoming: 1) }
    if upheaval == .eviction { try session.willEvict(before: context.count) }
    try session.stateReleased(for: upheaval == .trim ? .trim : .evict)
    try session.stateMade(bytes: stateBytes, for: upheaval == .trim ? .trim : .resume)
    context = []
    if !kept.isEmpty { try feed(kept, .trim) }
    try session.noticeShown(for: upheaval)
  }
  try session.modelLoaded(tookMs: 1, computeUnits: "none", isCold: true)
  while !session.isOver {
    let (prompt, isConversationStart) = session.nextTurn()
    if isConversationStart, !context.isEmpty { try session.stateReleased(for: .end) }
    if isConversationStart { context = [] }
    try session.turnBegins(prompt: prompt)
    if isConversationStart { try session.stateMade(bytes: stateBytes, for: .conversation) }
    if context.count + prompt.count > budget { try shrink(.trim) }
    try feed(prompt, .turn)
    for _ in 0..<session.turnLimit where !session.isOver {
      if session.signals.isWarned { try shrink(.eviction) }
      if context.count >= budget { try shrink(.trim) }
      let startNs = session.clock.nowNs
      session.clock.sleep(untilNs: startNs + 1_000_000)  // the work of a prediction
      let token = 1 + context.reduce(7) { ($0 &* 31 &+ $1) & 0xFFFF } % 999
      try session.sampled(token, rows: context.count, isEnd: false, startNs: startNs)
      context.append(token)
    }
    try session.turnEnds(session.isOver ? .cancelled : .turnLimit)
  }
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
