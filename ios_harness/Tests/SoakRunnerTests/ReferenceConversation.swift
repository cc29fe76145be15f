// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// One conversation under the contract, written down as its text reads and not as `ContextWindow` works: a turn is
/// played by recursion-free prose, without steps, stages or requests. It follows the contract's reference interpreter.
struct ReferenceConversation {
  /// One turn as a vector states it.
  struct Script {
    var prompt: [Token]
    var sampled: [Token]
    var limit: Int?
    /// Ordinals of the predictions during which a memory warning lands.
    var warnings: Set<Int>
  }

  /// Where a warning landed while ids were fed.
  private enum Landing { case nowhere, betweenChunks, withLogits }

  let budget: Int
  let pin: Int
  let endIDs: Set<Token>
  let chunk: Int

  private var context: [Token] = []
  private var accepted: [Token] = []
  private var pending: [Token] = []
  private var statesMade = 0
  private var isAlive = false
  private var operations: [JSONValue] = []
  private var warnedAt: Set<Int> = []
  private var ordinal = 0
  private var dryEvictions = 0

  init(budget: Int, pin: Int, endIDs: Set<Token>, chunk: Int) {
    self.budget = budget
    self.pin = pin
    self.endIDs = endIDs
    self.chunk = chunk
  }

  /// Plays one turn and returns its operations.
  mutating func play(_ script: Script) -> [JSONValue] {
    operations = []
    warnedAt = script.warnings
    ordinal = 0
    dryEvictions = 0
    playTurn(script)
    return operations
  }

  private mutating func playTurn(_ script: Script) {
    let head = Array(accepted.prefix(pin))
    let turnStart = accepted.count
    let isLost = !accepted.isEmpty && context.isEmpty
    let new = (isLost ? [] : pending) + script.prompt
    if new.count > budget - (accepted.isEmpty ? 0 : pin) {
      return write("refused", ["tokens": number(new.count)])
    }
    pending = []
    accepted += new
    if !context.isEmpty, context.count + new.count > budget, trim(room: budget - new.count) {
      _ = evict()
    }
    guard let landing = ingest(new, head, turnStart) else { return }
    generate(script, landing, turnStart)
  }

  /// Feeds X, from its start again after each eviction between chunks; nil when the turn has ended.
  private mutating func ingest(
    _ new: [Token], _ head: [Token], _ turnStart: Int
  ) -> Landing? {
    while true {
      let whole = turnStart > 0 && context.isEmpty ? head + new : new
      let landing = feed(whole, "prompt")
      if landing != .betweenChunks { return landing }
      if evict() {
        end("memory_pressure")
        return nil
      }
    }
  }

  private mutating func generate(_ script: Script, _ first: Landing, _ turnStart: Int) {
    var landing = first
    for (index, token) in script.sampled.enumerated() {
      write("sample", ["id": number(Int(token)), "n": number(context.count)])
      dryEvictions = 0
      if landing != .nowhere { _ = evict() }
      if endIDs.contains(token) || index + 1 == script.limit {
        pending = [token]
        return end(endIDs.contains(token) ? "end_token" : "turn_limit")
      }
      if !context.isEmpty, context.count + 1 > budget, trim(room: budget - 1) { _ = evict() }
      while context.isEmpty {
        let head = accepted.prefix(pin)
        let body = accepted.dropFirst(max(turnStart, pin))
        if feed(Array(head + body.suffix(budget / 2 - head.count)), "resume") == .nowhere {
          break
        }
        if evict() { return end("memory_pressure") }
      }
      landing = feed([token], "decode")
      accepted.append(token)
    }
    if landing != .nowhere { _ = evict() }
    end("script")
  }

  private mutating func feed(_ ids: [Token], _ purpose: String) -> Landing {
    for start in stride(from: 0, to: ids.count, by: chunk) {
      let end = min(start + chunk, ids.count)
      if predict(Array(ids[start..<end]), purpose) {
        return end == ids.count ? .withLogits : .betweenChunks
      }
    }
    return .nowhere
  }

  /// Returns whether a warning landed in it.
  private mutating func predict(_ ids: [Token], _ purpose: String) -> Bool {
    if !isAlive {
      isAlive = true
      statesMade += 1
      write("make", ["state": number(statesMade)])
    }
    context += ids
    ordinal += 1
    write(
      "predict",
      ["purpose": .string(purpose), "ids": list(ids), "n": number(context.count)])
    return warnedAt.contains(ordinal)
  }

  /// Returns whether a warning landed while what was kept was fed.
  private mutating func trim(room: Int) -> Bool {
    let keep = min(context.count, budget / 2, room)
    let pinned = min(pin, keep)
    let kept =
      keep == context.count
      ? context : Array(context.prefix(pinned) + context.suffix(keep - pinned))
    write("trim", ["before": number(context.count), "kept": list(kept)])
    drop()
    return !kept.isEmpty && feed(kept, "trim") != .nowhere
  }

  /// Returns whether nothing was sampled since the eviction before.
  private mutating func evict() -> Bool {
    write("evict", ["before": number(context.count)])
    drop()
    dryEvictions += 1
    return dryEvictions > 1
  }

  private mutating func drop() {
    write("drop", ["state": number(statesMade)])
    context = []
    isAlive = false
  }

  private mutating func end(_ reason: String) { write("end", ["reason": .string(reason)]) }

  private mutating func write(_ name: String, _ facts: [String: JSONValue]) {
    operations.append(.object(facts.merging(["op": .string(name)]) { $1 }))
  }

  private func number(_ value: Int) -> JSONValue { .integer(Int64(value)) }

  private func list(_ tokens: [Token]) -> JSONValue {
    .array(tokens.map { .integer(Int64($0)) })
  }
}
