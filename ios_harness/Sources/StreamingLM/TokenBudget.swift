// SPDX-License-Identifier: Apache-2.0

/// B, the token budget, with everything it was chosen from.
public struct TokenBudget: Sendable, Equatable {
  /// RAM class of the phone.
  public let memoryClass: MemoryClass
  /// What the policy gives the class.
  public let policyTokens: Int
  /// Most rows of the model's state.
  public let modelCapacity: Int
  /// What the scenario allows, if it says so.
  public let scenarioTokens: Int?
  /// What the memory for the cache allows, if it is limited.
  public let kvCeilingTokens: Int?

  /// - Parameters:
  ///   - memoryClass: RAM class of the phone.
  ///   - policyTokens: What the policy gives the class.
  ///   - modelCapacity: Most rows of the model's state.
  ///   - scenarioTokens: What the scenario allows, if it says so.
  ///   - kvCeilingTokens: What the memory for the cache allows, if it is limited.
  public init(
    memoryClass: MemoryClass, policyTokens: Int, modelCapacity: Int, scenarioTokens: Int? = nil,
    kvCeilingTokens: Int? = nil
  ) {
    self.memoryClass = memoryClass
    self.policyTokens = policyTokens
    self.modelCapacity = modelCapacity
    self.scenarioTokens = scenarioTokens
    self.kvCeilingTokens = kvCeilingTokens
  }

  /// The least of all inputs.
  public var tokens: Int {
    [policyTokens, modelCapacity, scenarioTokens, kvCeilingTokens].compactMap(\.self)
      .reduce(policyTokens, min)
  }

  /// The contract's policy: 2048 from the 8 GB class up, 1024 for 6 GB.
  public static func contractTokens(for memoryClass: MemoryClass) -> Int {
    switch memoryClass {
    case .gb6: 1024
    case .gb8, .gb12: 2048
    }
  }
}
