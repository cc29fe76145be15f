// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// A soak as the host describes it (docs/protocol.md, 2.2).
package struct Scenario: Sendable {
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
  package struct Prompts: Sendable {
    let lengths: ClosedRange<Int>
    /// Most tokens generated in a turn.
    package let turnLimit: Int
    package let turnsPerConversation: Int
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

  /// A warning of the app to itself, by `tokens_total`.
  struct Warning: Sendable, Equatable {
    let atToken: Int
    /// What the pipeline is to be doing: the first such moment from the token on.
    let phase: PipelinePhase
  }

  /// Time away from the foreground, by `tokens_total`.
  struct Visit: Sendable, Equatable {
    let atToken: Int
    let forMs: Int
  }

  let name: String
  let seed: UInt64
  package let durationS: Double
  let speed: EngineSpeed
  /// Share of the set speed, by thermal state.
  let thermalShares: [ThermalState: Double]
  let policy: Policy
  package let prompts: Prompts
  let endEvery: UInt64
  let samplePeriodMs: Int
  let ballast: [BallastSpan]
  let warnings: [Warning]
  package let stopAfterTokens: Int?
  /// Between two turns.
  let pauseMs: Int
  /// `tokens_total` at which the context is audited.
  let auditTokens: Set<Int>
  /// `tokens_total` from which the model is loaded again.
  let reloadTokens: Set<Int>
  let background: [Visit]
  let engineFaults: [ScriptedFault]
  let sampling: SamplingSetting
}

extension Scenario {
  /// Prompts travel in one record of at most 64 KiB.
  private static let mostPromptIDs = 4096
  fileprivate static let longestMs = 3_600_000

  /// - Throws: `JSONError.field` naming what is wrong.
  init(_ fields: JSONFields) throws(JSONError) {
    name = try fields.string("name")
    seed = try fields.unsigned("seed")
    durationS = try fields.positive("duration_s")
    let speed = try fields.object("speed")
    self.speed = EngineSpeed(
      decodeTokensPerS: try speed.positive("decode_tokens_per_s"),
      prefillTokensPerS: try speed.positive("prefill_tokens_per_s"))
    thermalShares = try Self.thermalShares(speed)
    policy = try Policy(try fields.object("policy"))
    prompts = try Prompts(try fields.object("prompts"), mostIDs: Self.mostPromptIDs)
    endEvery = try fields.unsigned("end_every")
    samplePeriodMs = try fields.integer("sample_period_ms", in: 10...Self.longestMs)
    var spans: [BallastSpan] = []
    for span in try fields.objects("ballast") { spans.append(try BallastSpan(span)) }
    ballast = spans
    var warnings: [Warning] = []
    for warning in try fields.objects("warnings") { warnings.append(try Warning(warning)) }
    self.warnings = warnings
    stopAfterTokens = try fields.optionalInteger("stop_after_tokens", in: 1...Int.max)
    pauseMs = try fields.optionalInteger("pause_ms", in: 0...Self.longestMs) ?? 0
    auditTokens = try Self.tokens(fields, "audits")
    reloadTokens = try Self.tokens(fields, "reloads")
    var visits: [Visit] = []
    for visit in try fields.optionalObjects("background") { visits.append(try Visit(visit)) }
    background = visits
    var faults: [ScriptedFault] = []
    for fault in try fields.optionalObjects("engine_faults") {
      faults.append(try ScriptedFault(fault))
    }
    engineFaults = faults
    sampling =
      fields.isNull("sampling") ? .greedy : try SamplingSetting(try fields.object("sampling"))
  }

  private static func tokens(_ fields: JSONFields, _ name: String) throws(JSONError) -> Set<Int> {
    var tokens: Set<Int> = []
    for entry in try fields.optionalObjects(name) { tokens.insert(try entry.atToken()) }
    return tokens
  }

  private static func thermalShares(
    _ speed: JSONFields
  ) throws(JSONError) -> [ThermalState: Double] {
    if speed.isNull("thermal_percent") { return [:] }
    let percents = try speed.object("thermal_percent")
    var shares: [ThermalState: Double] = [:]
    for state in ThermalState.allCases where !percents.isNull(state.rawValue) {
      shares[state] = Double(try percents.integer(state.rawValue, in: 1...100)) / 100
    }
    return shares
  }
}

extension JSONFields {
  fileprivate func atToken() throws(JSONError) -> Int { try integer("at_token", in: 1...Int.max) }

  /// A member that is a list of objects, `null` or missing.
  fileprivate func optionalObjects(_ name: String) throws(JSONError) -> [JSONFields] {
    isNull(name) ? [] : try objects(name)
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

extension Scenario.Warning {
  fileprivate init(_ fields: JSONFields) throws(JSONError) {
    atToken = try fields.atToken()
    phase = try fields.isNull("phase") ? .decode : fields.choice("phase", PipelinePhase.self)
  }
}

extension Scenario.Visit {
  fileprivate init(_ fields: JSONFields) throws(JSONError) {
    atToken = try fields.atToken()
    forMs = try fields.integer("for_ms", in: 1...Scenario.longestMs)
  }
}

extension ScriptedFault {
  private enum Kind: String, CaseIterable {
    case nonFinite = "non_finite"
    case surfaces, load
  }

  fileprivate init(_ fields: JSONFields) throws(JSONError) {
    switch try fields.choice("kind", Kind.self) {
    case .nonFinite: self = .nonFinite(atToken: try fields.atToken())
    case .surfaces: self = .surfaces(atToken: try fields.atToken())
    case .load: self = .load
    }
  }
}

extension SamplingSetting {
  private enum Mode: String, CaseIterable { case greedy, sampled }

  fileprivate init(_ fields: JSONFields) throws(JSONError) {
    guard try fields.choice("mode", Mode.self) == .sampled else {
      self = .greedy
      return
    }
    let topP = fields.isNull("top_p") ? nil : try fields.positive("top_p")
    self.init(
      draw: Draw(
        temperature: try fields.positive("temperature"),
        topK: try fields.optionalInteger("top_k", in: 1...Int.max), topP: topP,
        seed: try fields.unsigned("seed")))
  }
}
