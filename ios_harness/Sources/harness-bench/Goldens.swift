// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine

/// The reference engine's logits beside those of the model kit's fp32 forward.
enum Goldens {
  static func table(weights: DecoderWeights, path: String) throws -> String {
    let check = try GoldenCheck(path: path, DecoderEngine(weights: weights))
    return Report.table(
      "Logits against the goldens of the model kit",
      ["positions", "top-1 equal", "top-1 among the first 3", "largest error of a top-5 logit"],
      [
        [
          "\(check.positions)", "\(check.equal)", "\(check.contained)",
          Report.text(check.largestError, 4),
        ]
      ])
  }
}
