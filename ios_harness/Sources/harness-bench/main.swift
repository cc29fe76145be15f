// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import ReferenceEngine

// harness-bench WEIGHTS: what the pipeline and the reference engine cost on this machine, as Markdown. WEIGHTS is a
// `weights.safetensors` of the model kit's preset `tiny`. Build it with `-c release`.

let arguments = CommandLine.arguments.dropFirst()
guard let path = arguments.first, arguments.count == 1 else {
  Report.say("usage: harness-bench WEIGHTS")
  chost_exit_now(2)
}
let weights = try DecoderWeights(path: path)
Report.say(try await EngineShare(weights: weights).table())
Report.say(try LiveMemory().table())
Report.say(try DecodeCost(weights: weights).table())
