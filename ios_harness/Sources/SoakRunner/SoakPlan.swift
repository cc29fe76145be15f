// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// Why a soak cannot be started as asked.
enum SoakPlanError: Error, Equatable, CustomStringConvertible {
  /// No budget for the phone's class.
  case noBudget(MemoryClass)
  /// The host listed no package of the weights that this phone gets.
  case noPackage(Quantization)
  /// The app has no engine for packages of this kind.
  case noEngine(kind: String)
  /// The package's path leads out of the container.
  case outsideContainer(path: String)
  /// The package's content is not what its digest says.
  case digest(path: String)
  /// The package holds other weights than it is listed with.
  case otherWeights(Quantization)
  /// The engine cannot sample as asked.
  case sampling(engine: String)
  /// Two copies of a prompt would not fit one record.
  case promptsTooLong(ids: Int)

  var description: String {
    switch self {
    case .noBudget(let memoryClass): "scenario.policy.budget_tokens has no \(memoryClass.rawValue)"
    case .noPackage(let quantization): "packages has no \(quantization.rawValue)"
    case .noEngine(let kind): "no engine for packages of kind '\(kind)'"
    case .outsideContainer(let path): "package path '\(path)' leaves the container"
    case .digest(let path): "package '\(path)' does not have the digest it is listed with"
    case .otherWeights(let quantization): "the package holds \(quantization.rawValue) weights"
    case .sampling(let engine): "scenario.sampling: a \(engine) engine cannot sample so"
    case .promptsTooLong(let ids): "prompts of \(ids) ids do not fit a record"
    }
  }
}

/// One soak, decided: everything that follows from the host's order and the phone.
package struct SoakPlan: Sendable {
  let runID: String
  let nonce: Nonce
  package let scenario: Scenario
  package let digest: String
  let model: any SoakModel
  package let facts: ModelFacts
  let budget: TokenBudget
  let context: ContextPlan
  /// Ids of the pinned prefix.
  let pinIDs: [Token]
  /// A folder that is there once a launch has loaded the model; nil where the app itself knows.
  let loadMark: String?

  /// - Parameters:
  ///   - order: The `start` command.
  ///   - container: Packages lie under it.
  ///   - physicalMemoryBytes: What the phone reports.
  ///   - readers: Read packages, by kind.
  ///   - defects: A healthy app's have no influence.
  /// - Throws: An error that says on one line why this soak cannot be run here.
  init(
    order: JSONFields, container: String, physicalMemoryBytes: Int,
    readers: [String: ModelReader], defects: Defects
  ) throws {
    runID = try order.string("run_id")
    nonce = try Nonce(order)
    scenario = try Scenario(try order.object("scenario"))
    let memoryClass = try defects.bands.memoryClass(ofBytes: physicalMemoryBytes)
    let weights = try QuantizationPolicy(bands: defects.bands)
      .quantization(physicalMemoryBytes: physicalMemoryBytes)
    let package = try ListedPackage(
      defects.weights(weights), among: try order.objects("packages"))
    model = try package.model(in: container, readers)
    facts = model.facts
    digest = package.digest
    loadMark = "\(container)/Library/Caches/loaded/\(digest)"
    if !model.supports(scenario.sampling) { throw SoakPlanError.sampling(engine: facts.engine) }
    budget = try Self.budget(scenario.policy, facts, memoryClass, defects)
    pinIDs = scenario.policy.pin == .bos ? [facts.bosID].compactMap(\.self) : []
    context = try ContextPlan(
      budget: budget.tokens, pin: pinIDs.count, endIDs: defects.endIDs(Set(facts.endIDs)),
      chunk: facts.chunk, longPrompt: scenario.policy.longPrompt, rules: defects.rules)
    try requireRoom()
  }

  /// The prompts of this soak.
  package var schedule: PromptSchedule {
    PromptSchedule(
      seed: scenario.seed, lengths: scenario.prompts.lengths, firstID: facts.firstID,
      vocabularySize: facts.vocabularySize, bosID: facts.bosID)
  }

  /// A soak of an app that brings its own pipeline and budget: packages and policy are not the host's business.
  ///
  /// - Parameters:
  ///   - order: The `start` command.
  ///   - model: What the app says of its model.
  ///   - digest: 64 hexadecimal digits that name the model.
  ///   - budgetTokens: B of the app.
  ///   - physicalMemoryBytes: What the phone reports.
  /// - Throws: An error that says on one line why this soak cannot be run here.
  package init(
    order: JSONFields, model: any SoakModel, digest: String, budgetTokens: Int,
    physicalMemoryBytes: Int
  ) throws {
    runID = try order.string("run_id")
    nonce = try Nonce(order)
    scenario = try Scenario(try order.object("scenario"))
    self.model = model
    self.digest = digest
    facts = model.facts
    budget = TokenBudget(
      memoryClass: try MemoryBands.contract.memoryClass(ofBytes: physicalMemoryBytes),
      policyTokens: budgetTokens, modelCapacity: facts.capacity)
    pinIDs = []
    loadMark = nil
    context = try ContextPlan(
      budget: budget.tokens, pin: 0, endIDs: Set(facts.endIDs), chunk: facts.chunk)
    try requireRoom()
  }

  private static func budget(
    _ policy: Scenario.Policy, _ facts: ModelFacts, _ memoryClass: MemoryClass,
    _ defects: Defects
  ) throws(SoakPlanError) -> TokenBudget {
    guard let tokens = policy.budgetTokens[memoryClass] else { throw .noBudget(memoryClass) }
    return defects.budget(
      TokenBudget(
        memoryClass: memoryClass, policyTokens: tokens, modelCapacity: facts.capacity,
        scenarioTokens: policy.scenarioTokens, kvCeilingTokens: policy.kvCeilingTokens))
  }

  /// `turn_start` holds a prompt twice, and a record at most 64 KiB.
  private func requireRoom() throws(SoakPlanError) {
    let mostIDs = scenario.prompts.lengths.upperBound
    let idBytes = "\(facts.vocabularySize),".utf8.count
    if 2 * (mostIDs + 1) * idBytes + 1024 > 64 * 1024 { throw .promptsTooLong(ids: mostIDs) }
  }
}

/// A package that the host says it has pushed.
private struct ListedPackage {
  let quantization: Quantization
  let digest: String
  private let kind: String
  private let path: String

  init(_ quantization: Quantization, among entries: [JSONFields]) throws {
    for entry in entries
    where try entry.choice("quantization", Quantization.self) == quantization {
      self.quantization = quantization
      kind = try entry.string("kind")
      digest = try entry.string("digest")
      path = try entry.string("path")
      return
    }
    throw SoakPlanError.noPackage(quantization)
  }

  func model(in container: String, _ readers: [String: ModelReader]) throws -> any SoakModel {
    guard let read = readers[kind] else { throw SoakPlanError.noEngine(kind: kind) }
    if path.hasPrefix("/") || path.split(separator: "/").contains("..") {
      throw SoakPlanError.outsideContainer(path: path)
    }
    guard let model = try read("\(container)/\(path)", digest) else {
      throw SoakPlanError.digest(path: path)
    }
    let found = model.facts.quantization
    if found != quantization { throw SoakPlanError.otherWeights(found) }
    return model
  }
}
