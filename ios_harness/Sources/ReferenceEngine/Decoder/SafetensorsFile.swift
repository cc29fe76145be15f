// SPDX-License-Identifier: Apache-2.0

import HarnessCore

/// Why a file is not the weights that were expected.
public enum WeightsError: Error, Equatable, CustomStringConvertible {
  /// The file ends before its header does, or says it is larger than it is.
  case truncated
  /// The header is not what the format says.
  case header(JSONError)
  /// A tensor's bytes lie outside the file, or are not as many as its shape needs.
  case bounds(tensor: String)
  /// A tensor is missing or has another type or shape.
  case tensor(String, expected: String)

  /// One line for a person.
  public var description: String {
    switch self {
    case .truncated: "the weights file is cut short"
    case .header(let error): "header of the weights file: \(error)"
    case .bounds(let tensor): "tensor \(tensor) does not fit its bytes"
    case .tensor(let name, let expected): "tensor \(name): expected \(expected)"
    }
  }
}

/// A `safetensors` file: eight bytes of length, a JSON header, and the tensors in one block.
///
/// Source: github.com/huggingface/safetensors, README, "Format".
public struct SafetensorsFile: Sendable {
  /// Types that the model kit writes.
  public enum ElementType: String, CaseIterable, Sendable {
    /// Half precision.
    case half = "F16"
    /// Signed bytes.
    case int8 = "I8"
    /// Bytes.
    case uint8 = "U8"

    var byteCount: Int { self == .half ? 2 : 1 }
  }

  private struct Entry: Sendable {
    let type: ElementType
    let shape: [Int]
    let bytes: Range<Int>
  }

  /// The file's own notes.
  public let metadata: JSONFields
  private let entries: [String: Entry]
  private let bytes: [UInt8]

  private static let largestFileBytes = 1 << 30
  private static let largestHeaderBytes = 1 << 24
  private static let mostElements = 1 << 31

  /// Reads a file as a whole.
  ///
  /// - Parameter path: The file.
  /// - Throws: `SystemError` when it cannot be read, `WeightsError` when it is something else.
  public init(path: String) throws {
    try self.init(bytes: try Files.read(path, limitBytes: Self.largestFileBytes))
  }

  /// - Parameter bytes: Of the whole file; checked before use, it may be anything.
  /// - Throws: `WeightsError`.
  public init(bytes: [UInt8]) throws(WeightsError) {
    guard bytes.count >= 8 else { throw .truncated }
    let length = bytes[..<8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard length <= Self.largestHeaderBytes, Int(length) <= bytes.count - 8 else {
      throw .truncated
    }
    let start = 8 + Int(length)
    do throws(JSONError) {
      guard let members = try JSONReader.read(bytes[8..<start]).asObject else {
        throw .field(path: "header", expected: "an object")
      }
      metadata = try JSONFields(members["__metadata__"] ?? .object([:]), at: "__metadata__")
      entries = try Self.entries(members, from: start)
    } catch { throw .header(error) }
    for (name, entry) in entries where !Self.fits(entry, bytes.count) {
      throw .bounds(tensor: name)
    }
    self.bytes = bytes
  }

  private static func entries(
    _ members: [String: JSONValue], from start: Int
  ) throws(JSONError) -> [String: Entry] {
    var entries: [String: Entry] = [:]
    for (name, value) in members where name != "__metadata__" {
      let fields = try JSONFields(value, at: name)
      let offsets = try fields.int32s("data_offsets").map(Int.init)
      guard offsets.count == 2, offsets[0] >= 0, offsets[0] <= offsets[1] else {
        throw .field(path: "\(name).data_offsets", expected: "begin and end")
      }
      entries[name] = Entry(
        type: try fields.choice("dtype", ElementType.self),
        shape: try fields.int32s("shape").map(Int.init),
        bytes: start + offsets[0]..<start + offsets[1])
    }
    return entries
  }

  private static func fits(_ entry: Entry, _ fileBytes: Int) -> Bool {
    var count = 1
    for length in entry.shape {
      guard length >= 0, count == 0 || length <= mostElements / count else { return false }
      count *= length
    }
    return entry.bytes.upperBound <= fileBytes
      && entry.bytes.count == count * entry.type.byteCount
  }

  /// The bytes of a tensor.
  ///
  /// - Parameters:
  ///   - name: The tensor.
  ///   - type: What its elements must be.
  ///   - shape: What it must measure.
  /// - Returns: Rows one after another, little-endian.
  /// - Throws: `WeightsError.tensor` when it is another one.
  public func bytes(
    _ name: String, _ type: ElementType, _ shape: [Int]
  ) throws(WeightsError) -> ArraySlice<UInt8> {
    guard let entry = entries[name], entry.type == type, entry.shape == shape else {
      throw .tensor(name, expected: "\(type.rawValue) of \(shape)")
    }
    return bytes[entry.bytes]
  }

  /// Whether there is a tensor of a name.
  public func has(_ name: String) -> Bool { entries[name] != nil }

  /// A tensor of halves.
  public func halves(_ name: String, _ shape: [Int]) throws(WeightsError) -> [UInt16] {
    let raw = try bytes(name, .half, shape)
    return stride(from: raw.startIndex, to: raw.endIndex, by: 2).map { index in
      UInt16(raw[index]) | UInt16(raw[index + 1]) << 8
    }
  }
}
