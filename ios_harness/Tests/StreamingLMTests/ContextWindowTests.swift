// SPDX-License-Identifier: Apache-2.0

import HarnessCore
@testable import StreamingLM
import Testing

/// Hand-made cases for what the contract's vectors leave out: R4 truncation, R9, R12, R13, idle warnings.
@Suite struct ContextWindowTests {
  private func makeWindow(
    budget: Int = 8, pin: Int = 1, longPrompt: LongPromptPolicy = .refuse
  ) throws -> ContextWindow {
    ContextWindow(
      plan: try ContextPlan(
        budget: budget, pin: pin, endIDs: [0], chunk: 4, longPrompt: longPrompt))
  }

  /// Plays steps as a faultless engine would, sampling `tokens`, until nothing is left or `stop` says so.
  private func play(
    _ window: inout ContextWindow, sampling tokens: [Token] = [],
    until stop: (ContextWindow.Step) -> Bool = { _ in false }
  ) -> [ContextWindow.Step] {
    var steps: [ContextWindow.Step] = []
    var tokens = tokens[...]
    while let step = window.next() {
      steps.append(step)
      if stop(step) { break }
      switch step {
      case .predict: window.predicted()
      case .sample: if let token = tokens.popFirst() { window.sampled(token) }
      default: break
      }
    }
    return steps
  }

  private func next(_ window: inout ContextWindow) -> ContextWindow.Step? { window.next() }

  private func take(_ count: Int, _ window: inout ContextWindow) -> [ContextWindow.Step] {
    (0..<count).compactMap { _ in window.next() }
  }

  private func begin(_ window: inout ContextWindow, _ prompt: [Token]) -> [Token] {
    window.begin(prompt: prompt, limit: 1).used
  }

  @Test func aWarningBetweenTurnsEvictsAtOnceAndTheNextTurnStartsFromPinAndPrompt() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 5, 6], limit: 1)
    _ = play(&window, sampling: [9])
    window.requestEviction(.memoryWarning)
    #expect(
      play(&window) == [
        .evict(Eviction(before: 3, reason: .memoryWarning, phase: .idle)), .release(.evict),
        .settled(.eviction),
      ])
    #expect(begin(&window, [7]) == [7])
    #expect(
      play(&window, sampling: [9]).prefix(2) == [
        .make(.resume), .predict(Chunk(ids: [1, 7], start: 0, purpose: .turn)),
      ])
  }

  @Test func aWarningWithoutRowsDoesNothing() throws {
    var window = try makeWindow()
    window.requestEviction(.memoryWarning)
    #expect(play(&window).isEmpty)
    _ = window.begin(prompt: [1, 5], limit: 1)
    #expect(play(&window, sampling: [9]).contains(.end(.turnLimit)))
  }

  @Test func aWarningBeforeADecodeEvictsAndResumesThisTurn() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 5, 6], limit: 2)
    _ = play(&window, sampling: [9], until: { $0 == .sample })
    window.sampled(9)
    window.requestEviction(.memoryWarning)
    let steps = play(&window, sampling: [8])
    #expect(steps[0] == .evict(Eviction(before: 3, reason: .memoryWarning, phase: .prefill)))
    #expect(steps[4] == .predict(Chunk(ids: [1, 5, 6], start: 0, purpose: .resume)))
    #expect(steps[5] == .predict(Chunk(ids: [9], start: 3, purpose: .decode)))
    #expect(steps.last == .end(.turnLimit))
  }

  @Test func aFailedPredictionEndsTheTurnAndTheNextStartsAfresh() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 5, 6], limit: 5)
    _ = play(&window, sampling: [9], until: { $0 == .sample })
    window.sampled(9)
    #expect(next(&window) == .predict(Chunk(ids: [9], start: 3, purpose: .decode)))
    window.failed()
    #expect(
      play(&window) == [
        .evict(Eviction(before: 3, reason: .fault, phase: .decode)), .release(.evict),
        .settled(.eviction), .end(.fault),
      ])
    let opening = window.begin(prompt: [4], limit: 1)
    #expect(opening.used == [4] && opening.carried == 0)
    #expect(
      play(&window, sampling: [0]).prefix(2) == [
        .make(.resume), .predict(Chunk(ids: [1, 4], start: 0, purpose: .turn)),
      ])
  }

  @Test func aFailedFirstPredictionReleasesTheStateWithoutAnEviction() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 5], limit: 1)
    _ = take(2, &window)
    window.failed()
    #expect(play(&window) == [.release(.evict), .end(.fault)])
  }

  @Test func aStateThatCannotBeMadeIsNotReleased() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 5], limit: 1)
    #expect(next(&window) == .make(.conversation))
    window.makingFailed()
    #expect(play(&window) == [.end(.fault)])
  }

  @Test func aReloadFeedsTheWholeContextAgainWithoutANotice() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 5, 6], limit: 2)
    _ = play(&window, until: { $0 == .sample })
    window.requestReload()
    window.sampled(9)
    #expect(
      play(&window, sampling: [8]) == [
        .release(.reload), .load, .make(.reload),
        .predict(Chunk(ids: [1, 5, 6], start: 0, purpose: .reload)),
        .predict(Chunk(ids: [9], start: 3, purpose: .decode)), .sample, .end(.turnLimit),
      ])
  }

  @Test func leavingTheForegroundReleasesTheStateAfterTheSampleInHand() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 5, 6], limit: 3)
    _ = play(&window, until: { $0 == .sample })
    window.requestEviction(.background)
    window.isHeld = true
    window.sampled(9)
    #expect(
      take(3, &window) == [
        .evict(Eviction(before: 3, reason: .background, phase: .prefill)), .release(.background),
        .settled(.eviction),
      ])
    #expect(!window.isStateMade)
    #expect(next(&window) == .hold)
    window.isHeld = false
    #expect(next(&window) == .make(.resume))
  }

  @Test func lowMemoryTrimsToHalfBeforeTheNextDecode() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 5, 6, 7, 8], limit: 2)
    _ = play(&window, until: { $0 == .sample })
    window.report(isMemoryLow: true)
    window.sampled(9)
    let trim = Trim(
      before: 5, kept: [1, 6, 7, 8], pinned: 1, incoming: 1, reason: .lowMemory, phase: .decode)
    #expect(
      play(&window, sampling: [3]) == [
        .trim(trim), .release(.trim), .make(.trim),
        .predict(Chunk(ids: [1, 6, 7, 8], start: 0, purpose: .trim)), .settled(.trim),
        .predict(Chunk(ids: [9], start: 4, purpose: .decode)), .sample, .end(.turnLimit),
      ])
  }

  @Test func lowMemoryIsAnsweredOnceUntilItRecovers() throws {
    var window = try makeWindow()
    func lowMemoryTrims(_ steps: [ContextWindow.Step]) -> Int {
      steps.count { if case .trim(let trim) = $0 { trim.reason == .lowMemory } else { false } }
    }
    window.report(isMemoryLow: true)
    _ = window.begin(prompt: [1, 5, 6, 7, 8], limit: 3)
    #expect(lowMemoryTrims(play(&window, sampling: [9, 9, 9])) == 1)
    window.report(isMemoryLow: false)
    window.report(isMemoryLow: true)
    _ = window.begin(prompt: [3], limit: 1)
    #expect(lowMemoryTrims(play(&window, sampling: [9])) == 1)
  }

  @Test func lowMemoryUnderHalfABudgetChangesNothing() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 5, 6], limit: 2)
    window.report(isMemoryLow: true)
    let steps = play(&window, sampling: [9, 9])
    #expect(!steps.contains { if case .trim = $0 { true } else { false } })
  }

  @Test func aTrimThatIsInterruptedStillGetsItsNoticeFirst() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 2, 3, 4, 5, 6, 7, 8], limit: 2)
    _ = play(
      &window, sampling: [9],
      until: { if case .predict(let c) = $0 { c.purpose == .trim } else { false } })
    window.predicted()
    window.requestEviction(.memoryWarning)
    #expect(
      take(4, &window) == [
        .settled(.trim), .evict(Eviction(before: 4, reason: .memoryWarning, phase: .decode)),
        .release(.evict), .settled(.eviction),
      ])
  }

  @Test func aLongPromptIsTruncatedToPinAndTail() throws {
    var window = try makeWindow(longPrompt: .truncate)
    let opening = window.begin(prompt: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], limit: 1)
    #expect(opening.used == [1, 4, 5, 6, 7, 8, 9, 10] && opening.askedCount == 10)
    _ = play(&window, sampling: [11])
    #expect(begin(&window, Array(20..<30)) == Array(23..<30))
  }

  @Test func aCancelledPrefillForgetsWhatWasNotFed() throws {
    var window = try makeWindow(budget: 16)
    _ = window.begin(prompt: [1, 2, 3, 4, 5, 6], limit: 1)
    _ = play(&window, until: { if case .predict = $0 { true } else { false } })
    window.predicted()
    window.cancel()
    #expect(play(&window) == [.end(.cancelled)])
    #expect(window.context == [1, 2, 3, 4])
    _ = window.begin(prompt: [7], limit: 1)
    #expect(next(&window) == .predict(Chunk(ids: [7], start: 4, purpose: .turn)))
  }

  @Test func aTurnCancelledBeforeItsFirstPredictionKeepsThePendingToken() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 2], limit: 1)
    _ = play(&window, sampling: [9])
    _ = window.begin(prompt: [3], limit: 1)
    window.cancel()
    #expect(play(&window) == [.end(.cancelled)])
    #expect(begin(&window, [4]) == [9, 4])
  }

  @Test func anEndTokenWinsOverACancellation() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 2], limit: 5)
    _ = play(&window, until: { $0 == .sample })
    window.cancel()
    window.sampled(0)
    #expect(play(&window) == [.end(.endToken)])
  }

  @Test func aNewConversationReleasesTheStateAndForgetsEverything() throws {
    var window = try makeWindow()
    _ = window.begin(prompt: [1, 2], limit: 1)
    _ = play(&window, sampling: [9])
    window.endConversation()
    #expect(play(&window) == [.release(.end)])
    #expect(begin(&window, [1, 3]) == [1, 3])
    #expect(next(&window) == .make(.conversation))
  }

  @Test func numbersThatDoNotGoTogetherAreRefusedAtPlanTime() {
    #expect(throws: ContextPlanError.pinTooLong(pin: 3, budget: 8)) {
      try ContextPlan(budget: 8, pin: 3, endIDs: [], chunk: 4)
    }
    #expect(throws: ContextPlanError.budgetTooSmall(1)) {
      try ContextPlan(budget: 1, pin: 0, endIDs: [], chunk: 4)
    }
  }
}
