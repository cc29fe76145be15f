// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import ReferenceEngine

// harness-bench WEIGHTS GOLDENS: what the pipeline and the reference engine cost on this machine, as Markdown. Both files
// are of the model kit's preset `tiny`: `weights.safetensors` and `goldens.json`. Build it with `-c release`.

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count == 2 else {
  Report.say("usage: harness-bench WEIGHTS GOLDENS")
  chost_exit_now(2)
}
let weights = try DecoderWeights(path: arguments[0])
Report.say(try GoldenCheck(weights: weights, path: arguments[1]).table())
Report.say(try await EngineShare(weights: weights).table())
Report.say(try LiveMemory().table())
Report.say(try DecodeCost(weights: weights).table())
