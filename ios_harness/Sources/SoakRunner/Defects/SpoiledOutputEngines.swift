// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine
import StreamingLM

/// From one sample of the launch on the same id comes out, as from logits that are all alike.
final class ConstantOutputEngine: WitnessShim {
  private let fromToken: Int
  private var sampled = 0

  init(_ engine: WitnessEngine, fromToken: Int) {
    self.fromToken = fromToken
    super.init(engine)
  }

  override func sample() throws(EngineError) -> Token {
    let token = try super.sample()
    sampled += 1
    return sampled < fromToken ? token : engine.model.firstID
  }
}

/// After each trim the logits are further from those of a state set that was fed the same ids anew. The first id stays
/// the first.
final class DriftingEngine: WitnessShim {
  private var trims = 0

  private static let drift: Float = 1.5

  override func makeState(for purpose: StatePurpose) throws(EngineError) {
    if purpose == .trim { trims += 1 }
    try super.makeState(for: purpose)
  }

  override func compareAudit() throws(EngineError) -> Parity {
    let clean = try engine.candidates()
    var drifted = clean
    if trims > 0 { drifted[1...] = drifted[5...] + drifted[1..<5] }
    let used = drifted.map { candidate in
      Candidate(token: candidate.token, logit: candidate.logit - Self.drift * Float(trims))
    }
    return Parity(used: used, audited: try engine.auditCandidates())
  }
}
