// SPDX-License-Identifier: Apache-2.0

import Foundation
import HarnessCore
@testable import SoakRunner
import Testing

@Suite struct NoticeBoardTests {
  private let folder = NSTemporaryDirectory() + "notices-\(UUID().uuidString)"
  private let notice = SoakNotice(sequence: 7, text: "trimmed")

  private func journal() throws -> Journal {
    try Journal(folder: folder, launch: LaunchIdentifier(), clock: LaunchClock())
  }

  @Test func withoutAScreenTheRecordIsWrittenAtOnce() throws {
    let journal = try journal()
    let board = NoticeBoard(journal: journal, presentation: .immediate)
    try board.post(notice)
    #expect(journal.lastSequence == 1)
    #expect(board.current == notice)
  }

  @Test func withAScreenTheRecordWaitsForTheViewAndIsWrittenOnce() throws {
    let journal = try journal()
    let board = NoticeBoard(journal: journal, presentation: .shownByView)
    try board.post(notice)
    #expect(journal.lastSequence == 0)
    try board.wasShown(notice)
    try board.wasShown(notice)
    #expect(journal.lastSequence == 1)
    let line = try Files.read(journal.path, limitBytes: 4096)
    let fields = try JSONFields(try JSONReader.read(line))
    #expect(try fields.string("kind") == "notice" && fields.integer("for_seq") == 7)
  }

  @Test func aNoticeThatWasNeverPostedIsNeverRecorded() throws {
    let journal = try journal()
    let board = NoticeBoard(journal: journal, presentation: .shownByView)
    try board.wasShown(notice)
    #expect(journal.lastSequence == 0 && board.current == nil)
  }
}
