// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// The first record of a launch: who runs what, with which inputs.
extension LineBuffer {
  package mutating func hello(
    _ plan: SoakPlan, _ telemetry: Telemetry, _ reading: MemoryReading
  ) {
    let platform = telemetry.platform
    app(telemetry.app, platform.identity)
    phone(platform, reading, wallTimeS: telemetry.clock.wallTimeS)
    budget(plan.budget)
    model(plan)
    run(plan)
  }

  private mutating func app(_ app: AppIdentity, _ identity: DeviceIdentity) {
    field("app", app.name)
    field("app_version", app.version)
    field("stand_in", false)
    field("build", AppIdentity.build)
    field("pid", identity.processID)
    field("lc_uuid", identity.executableUUID)
  }

  private mutating func phone(
    _ platform: any DevicePlatform, _ reading: MemoryReading, wallTimeS: Double
  ) {
    let identity = platform.identity
    field("device", identity.productType)
    field("os", identity.os)
    field("os_build", identity.osBuild)
    field("boot_time_s", identity.bootTimeS)
    field("wall_time_s", wallTimeS)
    field("page_size", identity.pageBytes)
    field("physical_memory_bytes", identity.physicalMemoryBytes)
    memory(reading)
    field("available", reading.available)
    field("entitled", platform.isEntitled)
    field("memory_scale", platform.memoryScale)
  }

  private mutating func budget(_ budget: TokenBudget) {
    field("budget", budget.tokens)
    object("budget_inputs") { line in
      line.field("class", budget.memoryClass)
      line.field("policy_tokens", budget.policyTokens)
      line.field("model_capacity", budget.modelCapacity)
      line.field("scenario_tokens", budget.scenarioTokens)
      line.field("kv_ceiling_tokens", budget.kvCeilingTokens)
    }
  }

  private mutating func model(_ plan: SoakPlan) {
    let facts = plan.facts
    field("engine", facts.engine)
    field("quantization", facts.quantization)
    field("pin_ids", plan.pinIDs)
    field("end_ids", facts.endIDs)
    field("bos_id", facts.bosID)
    field("vocab", facts.vocabularySize)
    field("first_id", facts.firstID)
    field("chunk", facts.chunk)
    field("chunk_widths", facts.chunkWidths)
    field("text", facts.textName)
    sampling(plan.scenario.sampling)
  }

  private mutating func sampling(_ setting: SamplingSetting) {
    object("sampling") { line in
      line.field("mode", setting.mode)
      line.field("temperature", setting.draw?.temperature)
      line.field("top_k", setting.draw?.topK)
      line.field("top_p", setting.draw?.topP)
      line.field("seed", setting.draw?.seed)
    }
  }

  private mutating func run(_ plan: SoakPlan) {
    let policy = plan.scenario.policy
    object("policies") { line in
      line.field("pin", policy.pin)
      line.field("long_prompt", policy.longPrompt)
      line.field("headroom_percent", policy.headroomPercent)
    }
    field("end_every", plan.scenario.endEvery)
    field("nonce", plan.nonce.text)
    field("run_id", plan.runID)
    field("scenario", plan.scenario.name)
    field("seed", plan.scenario.seed)
  }
}
