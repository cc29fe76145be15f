// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import ReferenceEngine
import StreamingLM
import Testing

@Suite struct StreamingSessionTests {
  private func makeSession() throws -> StreamingSession {
    StreamingSession(engine: try WitnessFixture.engine(), plan: try WitnessFixture.plan())
  }

  @Test func aTurnStreamsItsTokensAndEndsOnce() async throws {
    let session = try makeSession()
    var context: [Token] = [1, 7, 9]
    var elements: [StreamElement] = []
    for try await element in session.turn(prompt: context, limit: 100) {
      elements.append(element)
      guard case .token(let token, let text) = element else { continue }
      #expect(text == "\(token)")
      if context.count <= 32 { #expect(token == WitnessFixture.expected(context)) }
      context.append(token)
    }
    #expect(elements.last == .ended(.turnLimit, generated: 100))
    #expect(elements.filter { if case .ended = $0 { true } else { false } }.count == 1)
    #expect(elements.filter { $0 == .notice(.trim) }.count == 5)
  }

  @Test func aSlowConsumerHoldsTheTurnBack() async throws {
    let session = try makeSession()
    var iterator = session.turn(prompt: [1, 2], limit: nil).makeAsyncIterator()
    _ = try await iterator.next()
    for _ in 0..<100 { await Task.yield() }
    // 2 prompt rows, one token taken, 16 waiting in the channel, one in the producer's hand.
    #expect(await session.rows <= 2 + 1 + 16 + 2)
  }

  @Test func aConsumerThatLeavesCancelsTheTurnAndTheNextOneRuns() async throws {
    let session = try makeSession()
    var seen = 0
    for try await _ in session.turn(prompt: [1, 2], limit: nil) {
      seen += 1
      if seen == 10 { break }
    }
    var last: StreamElement?
    while last == nil {  // the cancelled turn may still be leaving
      do {
        for try await element in session.turn(prompt: [3], limit: 2) { last = element }
      } catch SessionError.turnInProgress { await Task.yield() }
    }
    #expect(last == .ended(.turnLimit, generated: 2))
  }

  @Test func aSecondTurnAtTheSameTimeIsRefused() async throws {
    let session = try makeSession()
    var first = session.turn(prompt: [1, 2], limit: nil).makeAsyncIterator()
    _ = try await first.next()
    await #expect(throws: SessionError.turnInProgress) {
      for try await _ in session.turn(prompt: [3], limit: 1) {}
    }
  }

  @Test func aWarningBecomesANotice() async throws {
    let session = try makeSession()
    var notices = 0
    for try await element in session.turn(prompt: [1, 2], limit: 40) {
      if case .token = element, notices == 0 { session.signals.warn(1) }
      if element == .notice(.eviction) { notices += 1 }
    }
    #expect(notices >= 1)
  }
}
