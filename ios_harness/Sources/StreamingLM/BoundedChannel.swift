// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A queue from one producer to one consumer that holds at most `capacity` elements: a full one suspends the producer.
///
/// `AsyncThrowingStream` cannot push back: its bounded policies drop elements.
final class BoundedChannel<Element: Sendable>: Sendable {
  private struct State {
    var queue: [Element] = []
    var isEnded = false
    var consumer: CheckedContinuation<Element?, Never>?
    var producer: CheckedContinuation<Void, Never>?
  }

  private enum Reception {
    case element(Element, waking: CheckedContinuation<Void, Never>?)
    case ended
    case wait
  }

  private let capacity: Int
  private let state = Mutex(State())

  /// - Parameter capacity: At least 1.
  init(capacity: Int) { self.capacity = max(1, capacity) }

  /// Hands an element over; suspends while the queue is full. Once ended, elements are dropped.
  func send(_ element: Element) async {
    while true {
      if let consumer = offer(element) {
        consumer.resume(element)
        return
      }
      await withCheckedContinuation { (producer: CheckedContinuation<Void, Never>) in
        let isFree = state.withLock { state in
          if state.isEnded || state.queue.count < capacity { return true }
          state.producer = producer
          return false
        }
        if isFree { producer.resume() }
      }
    }
  }

  /// The next element, or nil when the channel has ended.
  func next() async -> Element? {
    await withCheckedContinuation { consumer in
      let reception = state.withLock { state in
        Self.receive(&state, from: consumer)
      }
      switch reception {
      case .element(let element, let producer):
        consumer.resume(returning: element)
        producer?.resume()
      case .ended: consumer.resume(returning: nil)
      case .wait: break
      }
    }
  }

  /// Ends the channel; what is queued can still be received.
  func finish() {
    let (consumer, producer) = state.withLock { state in
      state.isEnded = true
      defer { (state.consumer, state.producer) = (nil, nil) }
      return (state.consumer, state.producer)
    }
    consumer?.resume(returning: nil)
    producer?.resume()
  }

  /// Where an accepted element goes.
  private struct Acceptance {
    let consumer: CheckedContinuation<Element?, Never>?

    func resume(_ element: Element) { consumer?.resume(returning: element) }
  }

  /// Returns nil when the queue is full.
  private func offer(_ element: Element) -> Acceptance? {
    state.withLock { state in
      if state.isEnded { return Acceptance(consumer: nil) }
      if let consumer = state.consumer {
        state.consumer = nil
        return Acceptance(consumer: consumer)
      }
      if state.queue.count >= capacity { return nil }
      state.queue.append(element)
      return Acceptance(consumer: nil)
    }
  }

  private static func receive(
    _ state: inout State, from consumer: CheckedContinuation<Element?, Never>
  ) -> Reception {
    if state.queue.isEmpty {
      if state.isEnded { return .ended }
      state.consumer = consumer
      return .wait
    }
    let producer = state.producer
    state.producer = nil
    return .element(state.queue.removeFirst(), waking: producer)
  }
}
