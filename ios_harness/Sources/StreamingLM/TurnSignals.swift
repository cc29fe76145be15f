// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What reaches a turn from other threads: memory warnings, cancellation, leaving the foreground.
///
/// The machine reads it before and after each prediction (contract R7), so that raising never waits.
public final class TurnSignals: Sendable {
  private let warningCount = Atomic<Int>(0)
  private let warnings = Mutex<[Int]>([])
  private let cancelled = Atomic<Bool>(false)
  private let background = Atomic<Bool>(false)

  /// Nothing raised, in the foreground.
  public init() {}

  /// Raises a memory warning.
  ///
  /// - Parameter number: Its number in the launch, for the record of the eviction.
  public func warn(_ number: Int) {
    warnings.withLock { warnings in
      warnings.append(number)
      warningCount.store(warnings.count, ordering: .releasing)
    }
  }

  /// Whether a warning waits for an answer.
  public var isWarned: Bool { warningCount.load(ordering: .acquiring) > 0 }

  /// Numbers of the warnings that wait for an answer.
  public var openWarnings: [Int] { warnings.withLock { $0 } }

  /// Answers all warnings raised so far.
  public func answerWarnings() {
    warnings.withLock { warnings in
      warnings.removeAll()
      warningCount.store(0, ordering: .releasing)
    }
  }

  /// Whether the turn in flight is to end before its next prediction.
  public var isCancelled: Bool {
    get { cancelled.load(ordering: .acquiring) }
    set { cancelled.store(newValue, ordering: .releasing) }
  }

  /// Whether the app is away from the foreground: the state goes and no prediction runs (contract R12).
  public var isInBackground: Bool {
    get { background.load(ordering: .acquiring) }
    set { background.store(newValue, ordering: .releasing) }
  }
}
