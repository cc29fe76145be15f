// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import Testing

@Suite struct JSONTests {
  private func read(_ text: String) throws -> JSONValue { try JSONReader.read(text.utf8) }

  @Test func numbersKeepAll64Bits() throws {
    #expect(try read("18446744073709551615") == .unsigned(.max))
    #expect(try read("-9223372036854775808") == .integer(.min))
    #expect(try read("1.5e3") == .double(1500))
  }

  @Test func escapesAndSurrogatesBecomeText() throws {
    #expect(try read(#""a\n\u00e9\ud83d\ude00\/""#) == .string("a\né😀/"))
  }

  @Test func nestedValuesAreRead() throws {
    let value = try read(#" {"a": [1, true, null, {"b": "c"}], "a2": {}} "#)
    #expect(
      value
        == .object([
          "a": .array([.integer(1), .bool(true), .null, .object(["b": .string("c")])]),
          "a2": .object([:]),
        ]))
  }

  @Test(arguments: [
    "", "{", "[1,]", "{\"a\" 1}", "01", "1.", "-", "tru", "\"a", "\"\\x\"", "\"\\ud800\"",
    "\"\u{1}\"", "1 2", "nan", "1e999", "{1:2}", "[1}", "\"\\u12g4\"",
  ])
  func malformedTextIsRefused(text: String) {
    #expect(throws: JSONError.self) { try read(text) }
  }

  @Test func bytesThatAreNotUTF8AreRefused() {
    #expect(throws: JSONError.self) { try JSONReader.read([0x22, 0xFF, 0x22]) }
  }

  @Test func deepNestingIsRefusedBeforeTheStackEnds() {
    let deep = String(repeating: "[", count: 100_000)
    #expect(throws: JSONError.tooDeep(offset: JSONReader.deepestNesting)) { try read(deep) }
  }

  @Test func everyCutOfADocumentIsRefused() {
    let text = #"{"a":[1,-2.5,"x\u0041"],"b":null}"#
    for count in 0..<text.utf8.count {
      #expect(throws: JSONError.self) { try JSONReader.read(text.utf8.prefix(count)) }
    }
  }

  @Test func whatIsWrittenReadsBackTheSame() throws {
    let value: JSONValue = .object([
      "text": .string("quote \" slash \\ line \n bell \u{7} é"), "big": .unsigned(.max),
      "small": .integer(.min), "list": .array([.double(0.25), .bool(false), .null, .array([])]),
    ])
    #expect(try JSONReader.read(LineBuffer.document(value)) == value)
  }

  @Test func aLineHoldsItsMembersInOrder() {
    var line = LineBuffer()
    line.begin()
    line.field("n", -12)
    line.field("ids", [1, 2, 3])
    line.object("inputs") { inner in
      inner.field("x", Int?.none)
      inner.field("ok", true)
    }
    line.field("rate", Double.nan)
    line.end()
    #expect(
      String(decoding: line.bytes, as: UTF8.self)
        == #"{"n":-12,"ids":[1,2,3],"inputs":{"x":null,"ok":true},"rate":null}"# + "\n")
  }

  @Test func aWrongMemberIsNamedWithItsPath() throws {
    let fields = try JSONFields(try read(#"{"policy":{"pin":7}}"#))
    #expect(throws: JSONError.field(path: "policy.pin", expected: "a string")) {
      try fields.object("policy").string("pin")
    }
    #expect(throws: JSONError.field(path: "speed", expected: "an object")) {
      try fields.object("speed")
    }
  }
}
