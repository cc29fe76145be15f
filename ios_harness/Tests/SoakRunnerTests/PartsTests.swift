// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import HostPlatform
import ReferenceEngine
import Testing

@testable import SoakRunner
@testable import StreamingLM

@Suite struct PartsTests {
  /// Known answers of `prompt_ids` in orchestrator/domain/mixing.py.
  @Test func promptsAreThePublicFunctionOfTheSeed() {
    func prompt(
      _ seed: UInt64, _ lengths: ClosedRange<Int>, _ size: Int, _ conversation: Int,
      _ turn: Int
    ) -> [Token] {
      PromptSchedule(
        seed: seed, lengths: lengths, firstID: 2, vocabularySize: size, bosID: 1
      ).prompt(conversation: conversation, turn: turn)
    }
    #expect(prompt(7, 3...6, 1000, 1, 1) == [1, 689, 506, 96])
    #expect(prompt(7, 3...6, 1000, 2, 3) == [579, 585, 365])
    #expect(prompt(.max, 4...4, 32000, 1, 2) == [26895, 7446, 15347, 21537])
  }

  @Test func ballastGrowsByEqualStepsWithBothEndsIncluded() {
    let span = Scenario.BallastSpan(fromToken: 10, toToken: 13, toPercent: 50, holdTokens: 0)
    let growth = BallastGrowth(
      span: span, limitBytes: 1000, footprintBytes: 100, memoryScale: 4)
    #expect((9...15).map(growth.hostBytes) == [0, 25, 50, 75, 100, 100, 100])
    let over = BallastGrowth(
      span: span, limitBytes: 1000, footprintBytes: 900, memoryScale: 4)
    #expect(over.hostBytes(after: 13) == 0)
  }

  private func sample(_ token: Token, from startMs: Int64, to endMs: Int64) -> Sample {
    let chunk = Chunk(ids: [token], start: 0, purpose: .decode)
    let span = PredictionSpan(startNs: startMs * 1_000_000, endNs: endMs * 1_000_000)
    return Sample(
      token: token, rows: 1, place: 0, isEnd: false,
      prediction: Prediction(chunk: chunk, state: 1, span: span))
  }

  @Test func aBatchIsDueAtEightSamples() {
    var batch = TokenBatch()
    let due = (0..<8).map {
      batch.add(sample(Token($0), from: Int64($0), to: Int64($0) + 1))
    }
    #expect(due == [Bool](repeating: false, count: 7) + [true])
  }

  @Test func aBatchIsDueBeforeTheNextSampleWouldPass250Ms() {
    var batch = TokenBatch()
    let due = (0..<3).map { index in
      batch.add(sample(5, from: Int64(index) * 100, to: Int64(index + 1) * 100))
    }
    #expect(due == [false, false, true])
  }

  @Test(arguments: [
    (#"{"n":1,"event":"memory_warning"}"#, Condition.memoryWarning(.host)),
    (#"{"n":2,"event":"thermal","state":"serious"}"#, .thermal(.serious)),
    (
      #"{"n":3,"event":"battery","level_percent":87,"charging":true}"#,
      .battery(percent: 87, isCharging: true)
    ),
    (#"{"n":4,"event":"foreground","value":false}"#, .foreground(false)),
    (#"{"n":5,"event":"low_power","value":true}"#, .lowPower(true)),
  ])
  func aConditionIsRead(line: String, condition: Condition) {
    #expect(ConditionsChannel.condition(line.utf8) == condition)
  }

  @Test(arguments: [
    "", "{}", #"{"event":"earthquake"}"#, #"{"event":"thermal","state":"hot"}"#,
    #"{"event":"battery","level_percent":187,"charging":true}"#, #"{"event":"foreground"}"#,
  ])
  func anUnknownOrMalformedConditionIsIgnored(line: String) {
    #expect(ConditionsChannel.condition(line.utf8) == nil)
  }

  @Test(arguments: ["never", "never-trim:", "never-trim:0", "jetsam:many", ":5"])
  func anUnknownDefectIsRefused(text: String) {
    #expect(throws: UnknownDefectError.self) { try DefectCatalog.defects(named: text) }
  }

  @Test func aParameterReachesItsDefect() throws {
    #expect(try DefectCatalog.defects(named: "jetsam").leak?.fromToken == 600)
    #expect(try DefectCatalog.defects(named: "jetsam:30").leak?.fromToken == 30)
    #expect(try DefectCatalog.defects(named: "").leak == nil)
  }

  @Test func environmentNumbersAreStrict() throws {
    let environment = Environment(["A": "32", "B": "", "C": "-1", "D": "x"])
    #expect(try environment.count("A") == 32)
    #expect(try environment.count("B") == nil)
    for name in ["C", "D"] {
      #expect(throws: EnvironmentError.self) { try environment.count(name) }
    }
  }
}
