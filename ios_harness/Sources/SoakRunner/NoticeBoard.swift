// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import Synchronization

/// When the notice of a trim or an eviction counts as shown (contract R10).
public enum NoticePresentation: Sendable {
  /// At once: there is no screen.
  case immediate
  /// When a view says so.
  case shownByView
}

/// The notice of one trim or eviction.
public struct SoakNotice: Sendable, Equatable {
  /// Number of the record that it is for.
  public let sequence: UInt64
  /// What a person reads.
  public let text: String
}

/// Notices on their way to a person. The pipeline posts and goes on; the record is written by whoever shows.
final class NoticeBoard: Sendable {
  private struct State {
    var current: (notice: SoakNotice, postedNs: Int64)?
    var unshown: [SoakNotice] = []
  }

  private let journal: Journal
  private let presentation: NoticePresentation
  private let state = Mutex(State())

  /// How long a notice stays on a screen.
  private static let visibleNs: Int64 = 4_000_000_000
  /// A screen that shows nothing must not make the board grow.
  private static let mostUnshown = 256

  init(journal: Journal, presentation: NoticePresentation) {
    self.journal = journal
    self.presentation = presentation
  }

  /// The notice that a screen is to show; nil when the last one has been there long enough.
  var current: SoakNotice? {
    let nowNs = journal.clock.nowNs
    return state.withLock { state in
      state.current.flatMap { nowNs - $0.postedNs < Self.visibleNs ? $0.notice : nil }
    }
  }

  /// Takes a notice in; without a screen its record is written at once.
  func post(_ notice: SoakNotice) throws(SystemError) {
    let nowNs = journal.clock.nowNs
    state.withLock { state in
      state.current = (notice, nowNs)
      state.unshown.append(notice)
      if state.unshown.count > Self.mostUnshown { state.unshown.removeFirst() }
    }
    if case .immediate = presentation { try wasShown(notice) }
  }

  /// Writes the record of a notice, once.
  func wasShown(_ notice: SoakNotice) throws(SystemError) {
    let isNew = state.withLock { state in
      guard let index = state.unshown.firstIndex(of: notice) else { return false }
      state.unshown.remove(at: index)
      return true
    }
    guard isNew else { return }
    try journal.record("notice") { line in
      line.field("for_seq", notice.sequence)
      line.field("shown", true)
      line.field("text", notice.text)
    }
  }
}
