// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A queue from one producer to one consumer that holds at most `capacity` elements: a full one suspends the producer.
///
/// `AsyncThrowingStream` cannot push back: its bounded policies drop elements. A consumer that waits is woken for what is
/// urgent, or when the queue is half full: waking a thread costs more than all else that is done for an element.
final class BoundedChannel<Element: Sendable>: Sendable {
  private struct State {
    var queue: [Element] = []
    var isEnded = false
    var consumer: CheckedContinuation<Element?, Never>?
    var producer: CheckedContinuation<Void, Never>?

    /// The consumer that waits, with what it gets; nil when none waits or there is nothing.
    mutating func delivery() -> Delivery? {
      guard let consumer, !queue.isEmpty else { return nil }
      self.consumer = nil
      return Delivery(consumer: consumer, element: queue.removeFirst())
    }
  }

  private struct Delivery {
    let consumer: CheckedContinuation<Element?, Never>
    let element: Element

    func make() { consumer.resume(returning: element) }
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
  ///
  /// Runs where its caller does: a change of executors costs two switches of threads, for each token.
  ///
  /// - Parameters:
  ///   - element: Goes to the end of the queue.
  ///   - isUrgent: Whether a consumer that waits is woken at once.
  ///   - isolation: The caller's.
  func send(
    _ element: Element, isUrgent: Bool = true, isolation: isolated (any Actor)? = #isolation
  ) async {
    while !offer(element, isUrgent) {
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

  /// Wakes a consumer that waits if there is something for it.
  func flush() { state.withLock { $0.delivery() }?.make() }

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
    let (delivery, consumer, producer) = state.withLock { state in
      state.isEnded = true
      let delivery = state.delivery()
      defer { (state.consumer, state.producer) = (nil, nil) }
      return (delivery, state.consumer, state.producer)
    }
    delivery?.make()
    consumer?.resume(returning: nil)
    producer?.resume()
  }

  /// Returns whether there was room.
  private func offer(_ element: Element, _ isUrgent: Bool) -> Bool {
    let (hasRoom, delivery) = state.withLock { state -> (Bool, Delivery?) in
      if state.isEnded { return (true, nil) }
      if state.queue.count >= capacity { return (false, state.delivery()) }
      state.queue.append(element)
      return (true, isUrgent || state.queue.count * 2 >= capacity ? state.delivery() : nil)
    }
    delivery?.make()
    return hasRoom
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
