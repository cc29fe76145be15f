// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// Replays vector files of the contract, so that its implementations can be compared operation by operation.
public enum ContractReplay {
  /// Larger files are refused.
  private static let largestFileBytes = 64 * 1024 * 1024

  /// Answers `harness-host contract FILE [--witness]`.
  ///
  /// - Parameters:
  ///   - path: The vector file; what it says under `expect` or `token` is never read.
  ///   - isWitness: The file holds witness cases.
  /// - Returns: One JSON document: a list per vector of a list per turn, or the list of tokens.
  /// - Throws: `SystemError`, `JSONError` or `ContextPlanError`.
  public static func answer(path: String, isWitness: Bool) throws -> [UInt8] {
    let document = try JSONReader.read(try Files.read(path, limitBytes: largestFileBytes))
    guard let cases = document.asArray else {
      throw JSONError.field(path: "document", expected: "a list")
    }
    let answers = try cases.enumerated().map { index, item in
      let fields = try JSONFields(item, at: "[\(index)]")
      return isWitness ? try token(of: fields) : .array(try turns(of: fields))
    }
    return LineBuffer.document(.array(answers))
  }

  private static func token(of fields: JSONFields) throws -> JSONValue {
    let context = try fields.int32s("context")
    guard !context.isEmpty else {
      throw JSONError.field(path: fields.path(of: "context"), expected: "at least one id")
    }
    let first = try fields.integer("first_id", in: 0...Int(Token.max) - 1)
    let size = try fields.integer("vocab", in: first + 1...Int(Token.max))
    let vocabulary = WitnessVocabulary(
      size: size, firstID: Token(first),
      endID: Token(try fields.integer("end_id", in: 0...Int(Token.max))),
      endEvery: try fields.unsigned("end_every"))
    let token = Mixing.witnessToken(
      rowCount: context.count, vocabulary: vocabulary, nonce: try Nonce(fields).value
    ) { context[$0] }
    return .integer(Int64(token))
  }

  /// Replays one vector.
  ///
  /// - Parameters:
  ///   - fields: The vector.
  ///   - rules: The contract; a test changes one at a time.
  /// - Returns: A list per turn.
  /// - Throws: `JSONError` or `ContextPlanError`.
  static func turns(
    of fields: JSONFields, rules: ContextRules = .contract
  ) throws -> [JSONValue] {
    let plan = try ContextPlan(
      budget: try fields.integer("budget"), pin: try fields.integer("pin"),
      endIDs: Set(try fields.int32s("end_ids")), chunk: try fields.integer("chunk"),
      rules: rules)
    var conversation = ScriptedConversation(plan: plan)
    return try fields.objects("turns").map { turn in
      .array(conversation.play(try ScriptedTurn(turn)))
    }
  }
}

/// One turn of a vector.
private struct ScriptedTurn {
  let prompt: [Token]
  let sampled: [Token]
  let limit: Int?
  /// Ordinals of the predictions during which a memory warning arrives.
  let warnings: Set<Int>

  init(_ fields: JSONFields) throws(JSONError) {
    prompt = try fields.int32s("prompt")
    sampled = try fields.int32s("sampled")
    limit = try fields.optionalInteger("limit")
    warnings = Set(try fields.int32s("warnings").map(Int.init))
  }
}

/// A context window driven by a script instead of an engine; it writes down what a pipeline would do.
private struct ScriptedConversation {
  private var window: ContextWindow
  private var operations: [JSONValue] = []
  private var statesMade = 0
  private var ordinal = 0

  init(plan: ContextPlan) { window = ContextWindow(plan: plan) }

  mutating func play(_ turn: ScriptedTurn) -> [JSONValue] {
    operations = []
    ordinal = 0
    var script = turn.sampled[...]
    let opening = window.begin(prompt: turn.prompt, limit: turn.limit)
    while let step = window.next() {
      switch step {
      case .sample:
        guard let token = script.popFirst() else {
          endScript()
          return operations
        }
        write("sample", ("id", .integer(Int64(token))), ("n", number(window.rows)))
        window.sampled(token)
      case .end(.refused): write("refused", ("tokens", number(opening.askedCount)))
      default: perform(step, turn.warnings)
      }
    }
    return operations
  }

  private mutating func perform(_ step: ContextWindow.Step, _ warnings: Set<Int>) {
    switch step {
    case .make:
      statesMade += 1
      write("make", ("state", number(statesMade)))
    case .release: write("drop", ("state", number(statesMade)))
    case .trim(let trim): write("trim", ("before", number(trim.before)), ("kept", ids(trim.kept)))
    case .evict(let eviction): write("evict", ("before", number(eviction.before)))
    case .predict(let chunk):
      ordinal += 1
      window.predicted()
      let purpose = chunk.purpose == .turn ? "prompt" : chunk.purpose.rawValue
      write(
        "predict", ("purpose", .string(purpose)), ("ids", ids(chunk.ids)),
        ("n", number(window.rows)))
      if warnings.contains(ordinal) { window.requestEviction(.memoryWarning) }
    case .end(let reason): write("end", ("reason", .string(reason.rawValue)))
    case .sample, .hold, .load, .settled: break
    }
  }

  /// The script has no more samples: the turn is left as it is, apart from an eviction that is due.
  private mutating func endScript() {
    window.abandonSample()
    while let step = window.next() { perform(step, []) }
    write("end", ("reason", .string("script")))
  }

  private mutating func write(_ name: String, _ facts: (String, JSONValue)...) {
    var operation = Dictionary(uniqueKeysWithValues: facts)
    operation["op"] = .string(name)
    operations.append(.object(operation))
  }

  private func number(_ value: Int) -> JSONValue { .integer(Int64(value)) }

  private func ids(_ tokens: [Token]) -> JSONValue { .array(tokens.map { .integer(Int64($0)) }) }
}
