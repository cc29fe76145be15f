// SPDX-License-Identifier: Apache-2.0

import Foundation
import HarnessCore
@testable import ReferenceEngine
import Testing

@Suite struct SafetensorsTests {
  private static let recipe = """
    {\\"layers\\":1,\\"width\\":32,\\"heads\\":1,\\"kv_heads\\":1,\\"head_dim\\":32,\\"inner\\":32,\
    \\"vocab\\":4,\\"length\\":2,\\"weights\\":\\"int4\\",\\"chunk\\":1,\\"epsilon\\":1e-5,\
    \\"states\\":\\"pair\\"}
    """

  private func file(_ header: String, bytes: Int = 0, length: UInt64? = nil) -> [UInt8] {
    let count = length ?? UInt64(header.utf8.count)
    let prefix = (0..<8).map { UInt8(truncatingIfNeeded: count >> (8 * UInt64($0))) }
    return prefix + Array(header.utf8) + (0..<bytes).map { UInt8(truncatingIfNeeded: $0) }
  }

  @Test func tensorsAreFoundByNameTypeAndShape() throws {
    let file = try SafetensorsFile(
      bytes: file(
        #"{"a":{"dtype":"F16","shape":[1,2],"data_offsets":[2,6]},"__metadata__":{"k":"v"}}"#,
        bytes: 6))
    #expect(try file.halves("a", [1, 2]) == [0x0302, 0x0504])
    #expect(try file.metadata.string("k") == "v")
    #expect(file.has("a") && !file.has("b"))
    #expect(throws: WeightsError.tensor("a", expected: "F16 of [2, 1]")) {
      try file.halves("a", [2, 1])
    }
    #expect(throws: WeightsError.tensor("b", expected: "U8 of [2]")) {
      try file.bytes("b", .uint8, [2])
    }
  }

  @Test(arguments: [
    #"{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,99]}}"#,
    #"{"a":{"dtype":"F16","shape":[3],"data_offsets":[0,4]}}"#,
    #"{"a":{"dtype":"U8","shape":[2147483647,2147483647,4],"data_offsets":[0,4]}}"#,
    #"{"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}}"#,
  ])
  func aTensorThatDoesNotFitIsRefused(_ header: String) {
    #expect(throws: WeightsError.bounds(tensor: "a")) {
      try SafetensorsFile(bytes: file(header, bytes: 4))
    }
  }

  @Test(arguments: [
    "[]", "{", #"{"a":1}"#, #"{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,1]}}"#,
    #"{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}"#,
    #"{"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}"#,
  ])
  func aHeaderThatIsNoneIsRefused(_ header: String) {
    #expect(throws: WeightsError.self) {
      try SafetensorsFile(bytes: file(header, bytes: 4))
    }
  }

  @Test func aFileCutAtAnyByteIsRefusedOrLacksItsTensor() throws {
    let whole = try Files.read(
      ModelFixture.folder(.int8) + "/weights.safetensors", limitBytes: 1 << 24)
    for count in [0, 7, 8, 100, 4000, whole.count - 1] {
      #expect(throws: WeightsError.self) { try SafetensorsFile(bytes: Array(whole[..<count])) }
    }
    #expect(throws: WeightsError.truncated) {
      try SafetensorsFile(bytes: file("{}", length: .max))
    }
  }

  @Test func fourBitIntegersAreSignedAndScaledByBlocks() throws {
    #expect(try weights(of: "int4", packed: 0x98, scale: 0x4000).prefix(3) == [-16, -14, -16])
    #expect(try weights(of: "fp16", packed: 0, scale: 0x3C00).prefix(2) == [1, 1])
  }

  @Test func weightsThatAreNoNumbersAreRefusedByName() {
    #expect(throws: WeightsError.tensor("embed_tokens", expected: "finite numbers")) {
      try weights(of: "fp16", packed: 0, scale: 0x7E00)
    }
  }

  @Test(arguments: ["layers", "width", "heads", "length", "weights", "states", "epsilon"])
  func aRecipeWithoutASizeIsRefused(_ name: String) throws {
    let text = Self.recipe.replacingOccurrences(of: "\\\"\(name)\\\"", with: "\\\"other\\\"")
    let file = try SafetensorsFile(
      bytes: file(#"{"__metadata__":{"fleet.recipe":"\#(text)"}}"#))
    #expect(throws: WeightsError.self) { try DecoderWeights(file: file) }
  }

  /// The first query weights of a model whose matrices all hold one byte and one scale.
  private func weights(of storage: String, packed: UInt8, scale: UInt16) throws -> [Float] {
    var entries: [String] = []
    var bytes: [UInt8] = []
    func add(_ name: String, _ type: String, _ shape: [Int], _ element: [UInt8]) {
      let start = bytes.count
      for _ in 0..<shape.reduce(1, *) { bytes += element }
      entries.append(
        #""\#(name)":{"dtype":"\#(type)","shape":\#(shape),"data_offsets":[\#(start),\#(bytes.count)]}"#
      )
    }
    let half = [UInt8(scale & 255), UInt8(scale >> 8)]
    for (name, rows) in [("embed_tokens", 4), ("rope_cos", 2), ("rope_sin", 2), ("lm_head", 4)] {
      add(name, "F16", [rows, 32], half)
    }
    for name in ["l0_ln1", "l0_ln2", "ln_f"] { add(name, "F16", [32], half) }
    for name in ["q", "k", "v", "o", "gate", "up", "down"].map({ "l0_" + $0 }) {
      if storage == "fp16" {
        add(name, "F16", [32, 32], half)
      } else {
        add(name + ".integers", "U8", [32, 16], [packed])
        add(name + ".scales", "F16", [32, 1], half)
      }
    }
    let recipe = Self.recipe.replacingOccurrences(of: "int4", with: storage)
    let header =
      #"{"__metadata__":{"fleet.recipe":"\#(recipe)"},\#(entries.joined(separator: ","))}"#
    let weights = try DecoderWeights(
      file: try SafetensorsFile(bytes: file(header) + bytes))
    return UnsafeBufferPointer(start: weights.layers[0].queries.values, count: 32)
      .map { HalfFloat.widen($0) }
  }
}
