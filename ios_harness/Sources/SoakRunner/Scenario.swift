// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// A soak as the host describes it (docs/protocol.md, 2.2).
struct Scenario: Sendable {
  /// How the app keeps its context within memory.
  struct Policy: Sendable {
    /// What precedes every context.
    enum Pin: String, CaseIterable { case none, bos }

    let budgetTokens: [MemoryClass: Int]
    let scenarioTokens: Int?
    let kvCeilingTokens: Int?
    let pin: Pin
    let longPrompt: LongPromptPolicy
    /// Of the limit.
    let headroomPercent: Int
    /// R13.
    let trimsOnLowMemory: Bool
  }

  /// Shape of the scheduled prompts.
  struct Prompts: Sendable {
    let lengths: ClosedRange<Int>
    /// Most tokens generated in a turn.
    let turnLimit: Int
    let turnsPerConversation: Int
  }

  /// Memory held on purpose, by `tokens_total`.
  struct BallastSpan: Sendable, Equatable {
    let fromToken: Int
    let toToken: Int
    /// Footprint with the whole ballast, of the limit.
    let toPercent: Int
    /// Released so many tokens after `toToken` at the latest.
    let holdTokens: Int
  }

  let name: String
  let seed: UInt64
  let durationS: Double
  let speed: EngineSpeed
  let policy: Policy
  let prompts: Prompts
  let endEvery: UInt64
  let samplePeriodMs: Int
  let ballast: [BallastSpan]
  /// `tokens_total` at which the app warns itself.
  let warningTokens: Set<Int>
  let stopAfterTokens: Int?
}

extension Scenario {
  /// Prompts travel in one record of at most 64 KiB.
  private static let mostPromptIDs = 4096

  /// - Throws: `JSONError.field` naming what is wrong.
  init(_ fields: JSONFields) throws(JSONError) {
    name = try fields.string("name")
    seed = try fields.unsigned("seed")
    durationS = try fields.positive("duration_s")
    let speed = try fields.object("speed")
    self.speed = EngineSpeed(
      decodeTokensPerS: try speed.positive("decode_tokens_per_s"),
      prefillTokensPerS: try speed.positive("prefill_tokens_per_s"))
    policy = try Policy(try fields.object("policy"))
    prompts = try Prompts(try fields.object("prompts"), mostIDs: Self.mostPromptIDs)
    endEvery = try fields.unsigned("end_every")
    samplePeriodMs = try fields.integer("sample_period_ms", in: 10...3_600_000)
    var spans: [BallastSpan] = []
    for span in try fields.objects("ballast") { spans.append(try BallastSpan(span)) }
    ballast = spans
    var tokens: Set<Int> = []
    for warning in try fields.objects("warnings") {
      tokens.insert(try warning.integer("at_token", in: 1...Int.max))
    }
    warningTokens = tokens
    stopAfterTokens = try fields.optionalInteger("stop_after_tokens", in: 1...Int.max)
  }
}

extension Scenario.Policy {
  fileprivate init(_ fields: JSONFields) throws(JSONError) {
    let budgets = try fields.object("budget_tokens")
    var tokens: [MemoryClass: Int] = [:]
    for memoryClass in MemoryClass.allCases {
      tokens[memoryClass] = try budgets.optionalInteger(memoryClass.rawValue, in: 2...Int.max)
    }
    budgetTokens = tokens
    scenarioTokens = try fields.optionalInteger("scenario_budget_tokens", in: 2...Int.max)
    kvCeilingTokens = try fields.optionalInteger("kv_ceiling_tokens", in: 2...Int.max)
    pin = try fields.choice("pin", Pin.self)
    longPrompt = try fields.choice("long_prompt", LongPromptPolicy.self)
    headroomPercent = try fields.integer("headroom_percent", in: 0...100)
    trimsOnLowMemory = try fields.isNull("low_memory_trim") ? false : fields.bool("low_memory_trim")
  }
}

extension Scenario.Prompts {
  fileprivate init(_ fields: JSONFields, mostIDs: Int) throws(JSONError) {
    let fewest = try fields.integer("min_ids", in: 1...mostIDs)
    lengths = fewest...(try fields.integer("max_ids", in: fewest...mostIDs))
    turnLimit = try fields.integer("turn_limit", in: 1...Int.max)
    turnsPerConversation = try fields.integer("turns_per_conversation", in: 1...Int.max)
  }
}

extension Scenario.BallastSpan {
  private enum Release: String, CaseIterable { case evict }
  private static let mostTokens = 1 << 40

  fileprivate init(_ fields: JSONFields) throws(JSONError) {
    fromToken = try fields.integer("from_token", in: 1...Self.mostTokens)
    toToken = try fields.integer("to_token", in: fromToken...Self.mostTokens)
    toPercent = try fields.integer("to_percent", in: 1...200)
    holdTokens = try fields.integer("hold_tokens", in: 0...Self.mostTokens)
    _ = try fields.choice("release", Release.self)
  }
}
