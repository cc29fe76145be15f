// SPDX-License-Identifier: Apache-2.0

import StreamingLM
import Testing

@Suite struct TextTests {
  /// Known answers of `text_piece` in orchestrator/domain/mixing.py.
  @Test func piecesOfAnyTokensJoinToWholeText() {
    let tokens: [Token] = [26, 1, 2, 3, 4, 5, 6, 7]
    let pieces = tokens.enumerated().map { PieceText().bytes(of: $1, at: $0) }
    #expect(String(validating: pieces.flatMap(\.self), as: UTF8.self) == "aébc€de😀fgéh")
    for place in stride(from: 0, to: 8, by: 2) {
      #expect(String(validating: pieces[place], as: UTF8.self) == nil)
    }
  }

  @Test func aTableIsReadAndUnknownIDsGiveNothing() throws {
    let file: [UInt8] =
      Array("FTKT".utf8) + [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 2, 0, 0, 0]
      + [3, 0, 0, 0] + Array("abc".utf8)
    let table = try #require(TableText(file: file))
    #expect(table.bytes(of: 0) == Array("ab".utf8) && table.bytes(of: 1) == Array("c".utf8))
    #expect(table.bytes(of: 2) == [] && table.bytes(of: -1) == [])
    for cut in 0..<file.count { #expect(TableText(file: Array(file[..<cut])) == nil) }
  }

  /// Random bytes, valid and not, in random pieces: what is shown is what a whole decoding shows, and an incomplete
  /// character at the end is held.
  @Test(arguments: 0..<200)
  func assembledTextIsTheWholeText(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    let bytes = randomText(using: &generator)
    var assembler = UTF8Assembler()
    var shown = ""
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = Int.random(in: 1...min(5, rest.count), using: &generator)
      let piece = assembler.push(Array(rest.prefix(count)))
      #expect(!piece.isEmpty || assembler.heldCount > 0)
      shown += piece
      rest = rest.dropFirst(count)
    }
    #expect(assembler.heldCount <= 3)
    shown += assembler.finish()
    #expect(shown == String(decoding: bytes, as: UTF8.self))
  }

  @Test(arguments: 0..<100)
  func validTextIsNeverShownWithAReplacement(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    let text = (0..<40).map { _ in "aé€😀\u{1F9EA}ß漢".randomElement(using: &generator) ?? "a" }
    var assembler = UTF8Assembler()
    let shown = String(text).utf8.map { assembler.push([$0]) }.joined()
    #expect(shown == String(text) && assembler.heldCount == 0)
  }

  /// Characters of 1 to 4 bytes with garbage between them.
  private func randomText(using generator: inout SplitMix64) -> [UInt8] {
    (0..<Int.random(in: 1...60, using: &generator)).flatMap { _ -> [UInt8] in
      switch Int.random(in: 0..<6, using: &generator) {
      case 0: [UInt8.random(in: 0...255, using: &generator)]
      case 1: Array("é".utf8)
      case 2: Array("€".utf8)
      case 3: Array("😀".utf8)
      case 4: Array("😀".utf8.prefix(Int.random(in: 1...3, using: &generator)))
      default: [UInt8(ascii: "a")]
      }
    }
  }
}
