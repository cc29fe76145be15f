// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// Loads the model of a soak and records it.
struct ModelLoader {
  let plan: SoakPlan
  let telemetry: Telemetry
  let defects: Defects

  private static let shortestSlowLoadNs: Int64 = 100_000_000

  /// Writes `hello`, loads the model and writes `load`.
  ///
  /// - Returns: What runs the model.
  /// - Throws: `SystemError` when the journal cannot be written, or what the load throws.
  func load() throws -> any InferenceEngine {
    let clock = telemetry.clock
    let reading = telemetry.readMemory()
    try telemetry.journal.record("hello") { line in line.hello(plan, telemetry, reading) }
    try announce()
    let startNs = clock.nowNs
    let loaded = try plan.model.load(order)
    // The mark only tells a cold load from a warm one: without it every load is cold.
    if let mark = plan.loadMark { try? Files.makeFolder(mark) }
    telemetry.gauges.weightsBytes.store(plan.facts.weightsBytes, ordering: .relaxed)
    if defects.loadTimes > 1 { lingers(since: startNs) }
    try record(loaded.load, tookNs: clock.nowNs - startNs, isFirst: true)
    guard let witness = loaded.engine as? WitnessEngine else { return loaded.engine }
    return defects.engine(witness)
  }

  /// Says that the model is about to be loaded.
  func announce() throws(SystemError) {
    try telemetry.breadcrumb("load", plan.facts.quantization.rawValue)
  }

  /// Writes `load`.
  func record(_ load: ModelLoad, tookNs: Int64, isFirst: Bool) throws(SystemError) {
    let reading = telemetry.readMemory()
    let placements = load.plan.map(defects.placement)
    try telemetry.journal.record("load") { line in
      line.field("digest", plan.digest)
      line.field("bits_per_weight", plan.facts.bitsPerWeight)
      line.field("compute_units", load.computeUnits)
      line.field("plan", JSONValue.array(placements.map(\.asJSON)))
      line.field("cold", load.isCold)
      line.field("ms", Double(tookNs) / 1e6)
      line.field("phase", "loaded")
      line.field("reason", isFirst ? "launch" : "reload")
      line.field("weights_bytes", plan.facts.weightsBytes)
      line.memory(reading)
    }
  }

  private var order: LoadOrder {
    let (telemetry, shares) = (telemetry, plan.scenario.thermalShares)
    let ownShare = defects.speedShare
    return LoadOrder(
      memoryScale: telemetry.platform.memoryScale, speed: plan.scenario.speed,
      speedShare: {
        let tokens = telemetry.gauges.tokensTotal.load(ordering: .relaxed)
        let thermalShare = shares.isEmpty ? 1 : shares[telemetry.thermal, default: 1]
        return thermalShare * ownShare(tokens)
      },
      nonce: plan.nonce.value, endEvery: plan.scenario.endEvery,
      sampling: plan.scenario.sampling,
      wasLoaded: plan.loadMark.map(Files.exists) ?? false, faults: plan.scenario.engineFaults,
      clock: telemetry.clock,
      willDo: { about, detail in
        // A breadcrumb that cannot be written is no reason not to go on: the next record fails too.
        try? telemetry.breadcrumb(about, detail)
      })
  }

  /// A load that takes several times its time.
  private func lingers(since startNs: Int64) {
    let tookNs = max(telemetry.clock.nowNs - startNs, Self.shortestSlowLoadNs)
    telemetry.clock.sleep(untilNs: startNs + tookNs * Int64(defects.loadTimes))
  }
}

extension ModelLoad.Placement {
  fileprivate var asJSON: JSONValue {
    .object([
      "group": .string(group), "device": .string(device), "ops": .integer(Int64(operationCount)),
    ])
  }
}
