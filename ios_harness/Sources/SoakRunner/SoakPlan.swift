// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM

/// Why a soak cannot be started as asked.
enum SoakPlanError: Error, Equatable, CustomStringConvertible {
  /// No budget for the phone's class.
  case noBudget(MemoryClass)
  /// The host listed no package of the weights that this phone gets.
  case noPackage(Quantization)
  /// The package's path leads out of the container.
  case outsideContainer(path: String)
  /// The package's content is not what its digest says.
  case digest(path: String)
  /// The package holds other weights than it is listed with.
  case otherWeights(Quantization)
  /// Two copies of a prompt would not fit one record.
  case promptsTooLong(ids: Int)

  var description: String {
    switch self {
    case .noBudget(let memoryClass): "scenario.policy.budget_tokens has no \(memoryClass.rawValue)"
    case .noPackage(let quantization): "packages has no \(quantization.rawValue)"
    case .outsideContainer(let path): "package path '\(path)' leaves the container"
    case .digest(let path): "package '\(path)' does not have the digest it is listed with"
    case .otherWeights(let quantization): "the package holds \(quantization.rawValue) weights"
    case .promptsTooLong(let ids): "prompts of \(ids) ids do not fit a record"
    }
  }
}

/// One soak, decided: everything that follows from the host's order and the phone.
struct SoakPlan: Sendable {
  let runID: String
  let nonce: Nonce
  let scenario: Scenario
  let digest: String
  let model: WitnessModel
  let budget: TokenBudget
  let context: ContextPlan
  /// Ids of the pinned prefix.
  let pinIDs: [Token]

  /// - Parameters:
  ///   - order: The `start` command.
  ///   - container: Packages lie under it.
  ///   - physicalMemoryBytes: What the phone reports.
  ///   - defects: A healthy app's have no influence.
  /// - Throws: An error that says on one line why this soak cannot be run here.
  init(
    order: JSONFields, container: String, physicalMemoryBytes: Int, defects: Defects
  ) throws {
    runID = try order.string("run_id")
    nonce = try Nonce(order)
    scenario = try Scenario(try order.object("scenario"))
    let weights = try QuantizationPolicy(bands: defects.bands)
      .quantization(physicalMemoryBytes: physicalMemoryBytes)
    let package = try WitnessPackage(weights, among: try order.objects("packages"))
    model = try package.model(in: container)
    digest = package.digest
    budget = try Self.budget(
      scenario.policy, model, try defects.bands.memoryClass(ofBytes: physicalMemoryBytes))
    pinIDs = scenario.policy.pin == .bos ? [model.bosID].compactMap(\.self) : []
    context = try ContextPlan(
      budget: budget.tokens, pin: pinIDs.count, endIDs: [model.endID], chunk: model.chunk,
      longPrompt: scenario.policy.longPrompt, trimRule: defects.trimRule)
    try requireRoom()
  }

  /// The prompts of this soak.
  var schedule: PromptSchedule {
    PromptSchedule(
      seed: scenario.seed, lengths: scenario.prompts.lengths, firstID: model.firstID,
      vocabularySize: model.vocabularySize, bosID: model.bosID)
  }

  private static func budget(
    _ policy: Scenario.Policy, _ model: WitnessModel, _ memoryClass: MemoryClass
  ) throws(SoakPlanError) -> TokenBudget {
    guard let tokens = policy.budgetTokens[memoryClass] else { throw .noBudget(memoryClass) }
    return TokenBudget(
      memoryClass: memoryClass, policyTokens: tokens, modelCapacity: model.capacity,
      scenarioTokens: policy.scenarioTokens, kvCeilingTokens: policy.kvCeilingTokens)
  }

  /// `turn_start` holds a prompt twice, and a record at most 64 KiB.
  private func requireRoom() throws(SoakPlanError) {
    let mostIDs = scenario.prompts.lengths.upperBound
    let idBytes = "\(model.vocabularySize),".utf8.count
    if 2 * (mostIDs + 1) * idBytes + 1024 > 64 * 1024 { throw .promptsTooLong(ids: mostIDs) }
  }
}

/// A witness package that the host says it has pushed.
private struct WitnessPackage {
  private enum Kind: String, CaseIterable { case witness }

  let quantization: Quantization
  let digest: String
  private let path: String

  private static let largestFileBytes = 64 * 1024

  init(_ quantization: Quantization, among entries: [JSONFields]) throws {
    for entry in entries
    where try entry.choice("quantization", Quantization.self) == quantization {
      _ = try entry.choice("kind", Kind.self)
      self.quantization = quantization
      digest = try entry.string("digest")
      path = try entry.string("path")
      return
    }
    throw SoakPlanError.noPackage(quantization)
  }

  func model(in container: String) throws -> WitnessModel {
    if path.hasPrefix("/") || path.split(separator: "/").contains("..") {
      throw SoakPlanError.outsideContainer(path: path)
    }
    let bytes = try Files.read(
      "\(container)/\(path)/model.json", limitBytes: Self.largestFileBytes)
    guard SHA256.hexadecimal(of: bytes) == digest else { throw SoakPlanError.digest(path: path) }
    let model = try WitnessModel(json: bytes)
    if model.quantization != quantization { throw SoakPlanError.otherWeights(model.quantization) }
    return model
  }
}
