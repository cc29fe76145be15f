// SPDX-License-Identifier: Apache-2.0

import Foundation
import HarnessCore
import SoakRunner
import StreamingLM
import Testing

/// The folder `ios_harness/protocol`.
let protocolFolder = URL(filePath: #filePath).deletingLastPathComponent()
  .appending(path: "../../protocol/").standardizedFileURL.path(percentEncoded: false)

@Suite struct ContractReplayTests {
  private func cases(_ name: String) throws -> [JSONValue] {
    let bytes = try Files.read(protocolFolder + name, limitBytes: 1 << 24)
    return try #require(try JSONReader.read(bytes).asArray)
  }

  private func write(_ text: String) throws -> String {
    let path = NSTemporaryDirectory() + "vectors-\(UUID().uuidString).json"
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  @Test func everyVectorGivesItsTrace() throws {
    let name = "contract_vectors.json"
    let answer = try ContractReplay.answer(path: protocolFolder + name, isWitness: false)
    let traces = try #require(try JSONReader.read(answer).asArray)
    let vectors = try cases(name)
    #expect(vectors.count == 82 && traces.count == 82)
    for (vector, trace) in zip(vectors, traces) {
      let fields = try JSONFields(vector)
      #expect(fields["expect"] == trace, "\(fields["name"])")
    }
  }

  @Test func everyWitnessCaseGivesItsToken() throws {
    let name = "witness_vectors.json"
    let answer = try ContractReplay.answer(path: protocolFolder + name, isWitness: true)
    let tokens = try cases(name).map { try JSONFields($0)["token"] }
    #expect(tokens.count == 24)
    #expect(try JSONReader.read(answer) == .array(tokens))
  }

  @Test(arguments: [
    "", "{}", "[1]", "[{}]",
    #"[{"budget":8,"pin":3,"end_ids":[0],"chunk":4,"turns":[]}]"#,
    #"[{"budget":8,"pin":1,"end_ids":[0],"chunk":4,"turns":[{"prompt":["a"]}]}]"#,
  ])
  func aFileOfAWrongShapeIsRefused(text: String) throws {
    let path = try write(text)
    #expect(throws: (any Error).self) {
      try ContractReplay.answer(path: path, isWitness: false)
    }
  }

  @Test(arguments: [
    #"[{"context":[],"nonce":"0000000000000001","vocab":9,"first_id":2,"end_id":0,"end_every":0}]"#,
    #"[{"context":[3],"nonce":"1","vocab":9,"first_id":2,"end_id":0,"end_every":0}]"#,
    #"[{"context":[3],"nonce":"0000000000000001","vocab":2,"first_id":2,"end_id":0,"end_every":0}]"#,
  ])
  func aWitnessFileOfAWrongShapeIsRefused(text: String) throws {
    let path = try write(text)
    #expect(throws: JSONError.self) { try ContractReplay.answer(path: path, isWitness: true) }
  }

  @Test func aMissingFileIsRefused() {
    #expect(throws: SystemError("open /nowhere", code: ENOENT)) {
      try ContractReplay.answer(path: "/nowhere", isWitness: false)
    }
  }
}
