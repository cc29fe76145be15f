// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// A small witness that is as fast as the machine.
enum WitnessFixture {
  static let nonce: UInt64 = 0x0123_4567_89AB_CDEF
  static let modelJSON = """
    {"kind":"witness","quantization":"int4","bits_per_weight":4,"weights_bytes":65536,
     "kv_row_bytes":64,"capacity":64,"vocab":1000,"first_id":2,"end_id":0,"bos_id":1,"chunk":8}
    """

  static func engine(decodeTokensPerS: Double = 1e9) throws -> WitnessEngine {
    try WitnessEngine(
      model: try WitnessModel(json: Array(modelJSON.utf8)),
      setting: .init(
        memoryScale: 2,
        speed: EngineSpeed(decodeTokensPerS: decodeTokensPerS, prefillTokensPerS: 1e9),
        nonce: nonce, endEvery: 0, clock: LaunchClock()))
  }

  static func plan(budget: Int = 32) throws -> ContextPlan {
    try ContextPlan(budget: budget, pin: 1, endIDs: [0], chunk: 8)
  }

  /// What a witness that holds `context` must sample.
  static func expected(_ context: [Token]) -> Token {
    Mixing.witnessToken(
      rowCount: context.count,
      vocabulary: WitnessVocabulary(size: 1000, firstID: 2, endID: 0, endEvery: 0), nonce: nonce
    ) { context[$0] }
  }
}
