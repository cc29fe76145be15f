// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// How near an engine's logits are to the goldens of the model kit, which an fp32 forward computed.
public struct GoldenCheck: Sendable, Equatable {
  /// Tokens whose logits were compared.
  public private(set) var positions = 0
  /// Positions at which both put the same id first.
  public private(set) var equal = 0
  /// Positions at which the golden first id is among the engine's first three.
  public private(set) var contained = 0
  /// Largest difference of a logit that is among the golden first five.
  public private(set) var largestError = 0.0

  private static let leastEqualShare = 0.99
  private static let largestFileBytes = 1 << 26

  /// Whether the engine computes the model of the goldens: the same first id at 99 of 100 positions, and always among
  /// the first three.
  public var isMet: Bool {
    positions > 0 && contained == positions
      && Double(equal) >= Self.leastEqualShare * Double(positions)
  }

  /// One line for a person.
  public var description: String {
    "goldens: \(equal) of \(positions) first ids equal, \(contained) among the first 3, largest error \(largestError)"
  }

  /// Feeds the prompts of the goldens, each into a state of its own.
  ///
  /// - Parameters:
  ///   - path: `goldens.json` of the kit.
  ///   - engine: Without a state; it has none afterwards.
  /// - Throws: `SystemError`, `JSONError` or `EngineError`.
  public init(path: String, _ engine: DecoderEngine) throws {
    let document = try JSONFields(
      try JSONReader.read(try Files.read(path, limitBytes: Self.largestFileBytes)), at: "goldens")
    for prompt in try document.objects("prompts") {
      try engine.makeState(for: .conversation)
      defer { engine.releaseState(for: .end) }
      let (ids, logits) = (try prompt.array("top_ids"), try prompt.array("top_logits"))
      for (row, id) in try prompt.int32s("ids").enumerated() {
        try engine.predict(Chunk(ids: [id], start: row, purpose: row == 0 ? .turn : .decode))
        guard ids.indices.contains(row), logits.indices.contains(row) else { continue }
        add(engine.logits, ids: ids[row].asArray ?? [], golden: logits[row].asArray ?? [])
      }
    }
  }

  private mutating func add(
    _ logits: UnsafeBufferPointer<Float>, ids: [JSONValue], golden: [JSONValue]
  ) {
    let tokens = ids.compactMap(\.asInteger).filter { logits.indices.contains($0) }
    positions += 1
    guard let first = tokens.first else { return }
    let better = logits.count { $0 > logits[first] }
    if better == 0 { equal += 1 }
    if better < 3 { contained += 1 }
    for (token, value) in zip(tokens, golden.compactMap(\.asDouble)) {
      largestError = max(largestError, abs(Double(logits[token]) - value))
    }
  }
}
