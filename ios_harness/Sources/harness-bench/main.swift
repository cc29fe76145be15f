// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import ReferenceEngine

// harness-bench WEIGHTS GOLDENS [PART]: what the pipeline and the reference engine cost on this machine, as Markdown. Both
// files are of the model kit's preset `tiny`: `weights.safetensors` and `goldens.json`. PART is one of `goldens`,
// `share`, `memory` and `decode`; without it all are measured. Build it with `-c release`.

let arguments = Array(CommandLine.arguments.dropFirst())
let parts = arguments.count == 3 ? [arguments[2]] : ["goldens", "share", "memory", "decode"]
guard 2...3 ~= arguments.count else {
  Report.say("usage: harness-bench WEIGHTS GOLDENS [goldens|share|memory|decode]")
  chost_exit_now(2)
}
let weights = try DecoderWeights(path: arguments[0])
for part in parts {
  switch part {
  case "goldens": Report.say(try Goldens.table(weights: weights, path: arguments[1]))
  case "share": Report.say(try await EngineShare(weights: weights).table())
  case "memory": Report.say(try LiveMemory().table())
  case "decode": Report.say(try DecodeCost(weights: weights).table())
  default:
    Report.say("harness-bench: there is no part \(part)")
    chost_exit_now(2)
  }
}
