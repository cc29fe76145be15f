// SPDX-License-Identifier: Apache-2.0

import Foundation
import HarnessCore
import Testing

@Suite struct JournalTests {
  private let folder = NSTemporaryDirectory() + "journal-\(UUID().uuidString)"

  private func makeJournal() throws -> Journal {
    try Journal(folder: folder, launch: LaunchIdentifier(), clock: LaunchClock())
  }

  private func lines(of journal: Journal) throws -> [[UInt8]] {
    let bytes = try Files.read(journal.path, limitBytes: 1 << 24)
    return bytes.split(separator: 0x0A, omittingEmptySubsequences: true).map { $0 + [0x0A] }
  }

  @Test func recordsAreNumberedFromOneWithoutGapsFromManyThreads() async throws {
    let journal = try makeJournal()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<50 { _ = try? journal.record("sample") { $0.field("n", 1) } }
        }
      }
    }
    let numbers = try lines(of: journal).map { try JSONReader.read($0).asObject?["seq"]?.asInteger }
    #expect(numbers == Array(1...200))
    #expect(journal.lastSequence == 200)
  }

  @Test func everyChainHashesTheLinesSinceTheLastOne() throws {
    let journal = try makeJournal()
    for index in 0..<70 { try journal.record("sample") { $0.field("n", index) } }
    try journal.record("bye", .machine, isLast: true) { _ in }
    var open: [UInt8] = []
    var chained: [Int] = []
    for (index, line) in try lines(of: journal).enumerated() {
      guard let chain = try JSONReader.read(line).asObject?["chain"]?.asString else {
        open += line
        continue
      }
      #expect(chain == String(SHA256.hexadecimal(of: open).prefix(16)))
      open = []
      chained.append(index + 1)
    }
    #expect(chained == [32, 64, 71])
  }

  @Test func nothingFollowsTheLastRecord() throws {
    let journal = try makeJournal()
    try journal.record("bye", isLast: true) { _ in }
    #expect(try journal.record("sample") { _ in } == nil)
    #expect(try lines(of: journal).count == 1)
    #expect(try Files.read(journal.path, limitBytes: 1000).count == journal.committedBytes)
  }

  @Test func aFolderThatCannotBeMadeIsNamed() {
    #expect(throws: SystemError("make folder /dev/null/journals", code: ENOTDIR)) {
      try Journal(
        folder: "/dev/null/journals", launch: LaunchIdentifier(), clock: LaunchClock())
    }
  }

  @Test func aLaunchIdentifierIsALowerCaseUUID() throws {
    let text = LaunchIdentifier().description
    #expect(UUID(uuidString: text)?.uuidString.lowercased() == text)
  }

  /// A kill or a power cut may leave any prefix of the file: its whole lines are the records written before, and what is
  /// left of the next one is told from a record.
  @Test func aJournalCutAtAnyByteIsReadable() throws {
    let journal = try makeJournal()
    for index in 0..<40 {
      try journal.record(index % 7 == 0 ? "state" : "tokens", index % 7 == 0 ? .machine : .process)
      {
        $0.field("ids", [index, 2 * index])
        $0.field("text", "é\"\(index)\n")
      }
    }
    let bytes = try Files.read(journal.path, limitBytes: 1 << 20)
    let ends = bytes.indices.filter { bytes[$0] == 0x0A }
    let lines = try lines(of: journal)
    for (index, line) in lines.enumerated() {
      #expect(try JSONReader.read(line).asObject?["seq"] == .integer(Int64(index + 1)))
    }
    for cut in 0...bytes.count {
      let whole = ends.prefix { $0 < cut }
      let torn = bytes[(whole.last.map { $0 + 1 } ?? 0)..<cut]
      // All but the end of the line may be there: such a record is whole as well.
      if torn.isEmpty || torn.last == UInt8(ascii: "}") && cut < bytes.count && bytes[cut] == 0x0A {
        continue
      }
      #expect(throws: JSONError.self) { try JSONReader.read(torn) }
    }
  }
}
