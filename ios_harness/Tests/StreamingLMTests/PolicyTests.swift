// SPDX-License-Identifier: Apache-2.0

@testable import StreamingLM
import Testing

@Suite struct PolicyTests {
  @Test(arguments: [
    (8_021_032_960, MemoryClass.gb8, Quantization.int8),  // iPhone16,2: under 8 GiB
    (5_915_688_960, .gb6, .int4), (5 << 30, .gb6, .int4), ((7 << 30) - 1, .gb6, .int4),
    (7 << 30, .gb8, .int8), (10 << 30, .gb12, .int8),
  ])
  func bandsOfPhysicalMemoryChooseClassAndWeights(
    bytes: Int, memoryClass: MemoryClass, quantization: Quantization
  ) throws {
    #expect(try MemoryBands.contract.memoryClass(ofBytes: bytes) == memoryClass)
    #expect(
      try QuantizationPolicy().quantization(physicalMemoryBytes: bytes) == quantization)
  }

  @Test func aPhoneUnderTheSmallestClassIsRefused() {
    #expect(throws: MemoryClassError(physicalMemoryBytes: 4 << 30)) {
      try MemoryBands.contract.memoryClass(ofBytes: 4 << 30)
    }
  }

  @Test func theBudgetIsTheLeastOfItsInputs() {
    func tokens(_ scenario: Int?, _ ceiling: Int?) -> Int {
      TokenBudget(
        memoryClass: .gb8, policyTokens: TokenBudget.contractTokens(for: .gb8),
        modelCapacity: 4096, scenarioTokens: scenario, kvCeilingTokens: ceiling
      ).tokens
    }
    #expect(tokens(nil, nil) == 2048)
    #expect(tokens(512, nil) == 512)
    #expect(tokens(1024, 300) == 300)
    #expect(tokens(4000, nil) == 2048)
  }

  @Test func theGovernorHoldsAvailableMemoryAgainstTheHeadroom() {
    let governor = MemoryGovernor(headroomPercent: 20)
    #expect(!governor.isLow(availableBytes: 20, limitBytes: 100))
    #expect(governor.isLow(availableBytes: 19, limitBytes: 100))
    #expect(!governor.isLow(availableBytes: 0, limitBytes: nil))
    #expect(!MemoryGovernor(headroomPercent: nil).isLow(availableBytes: 0, limitBytes: 100))
  }

  @Test func halfACharacterIsNeverShown() {
    var assembler = UTF8Assembler()
    func push(_ bytes: [UInt8]) -> String { assembler.push(bytes) }
    #expect(push([0xE2, 0x82]) == "")
    #expect(push([0xAC, 0x41, 0xF0, 0x9F]) == "€A")
    #expect(push([0x98, 0x80]) == "😀")
    #expect(push([0xC3]) == "")
    let rest = assembler.finish()
    #expect(rest == "\u{FFFD}")
  }
}
