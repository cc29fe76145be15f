// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import Foundation
import HarnessCore
import ReferenceEngine

/// A folder of the model kit as it was pushed: `kit.json` and the packages it lists.
struct KitFolder {
  let url: URL
  let shape: DecoderShape
  /// Bytes of all packages.
  let weightsBytes: Int

  private static let largestFileBytes = 1 << 20
  private static let mostBytes = 1 << 50

  init(_ url: URL) throws {
    self.url = url
    let bytes = try Files.read(
      url.appendingPathComponent("kit.json").path, limitBytes: Self.largestFileBytes)
    let fields = try JSONFields(try JSONReader.read(bytes), at: "kit")
    try Self.requireOwnRows(fields)
    shape = try DecoderShape(recipe: try fields.object("recipe"))
    weightsBytes = try fields.objects("packages").reduce(0) { total, package in
      total + (try package.integer("bytes", in: 0...Self.mostBytes))
    }
  }

  /// Refuses the layout whose graph only reads its states: nobody here writes the new rows, so that every token would
  /// be computed from an empty cache, without an error.
  private static func requireOwnRows(_ fields: JSONFields) throws {
    guard fields.has("layout"), try fields.string("layout") == hostWritten else { return }
    throw CoreMLError.files(
      "kit.json: the layout \(hostWritten) leaves the cache to the host, which this engine does not write; "
        + "build the kit with --layout separate or multifunction")
  }

  private static let hostWritten = "host-state"

  /// SHA-256 over all files below a folder, by relative path: path, zero byte, size in decimal, zero byte, content. The
  /// host's `folder_digest` gives the same.
  static func digest(_ folder: URL) throws -> String {
    let root = folder.resolvingSymlinksInPath().path + "/"
    var hash = SHA256()
    for name in try files(below: root) {
      let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: root + name))
      defer { try? file.close() }
      let size = try file.seekToEnd()
      try file.seek(toOffset: 0)
      hash.update(Array("\(name)\0\(size)\0".utf8))
      while try autoreleasepool(invoking: { () throws -> Bool in
        guard let block = try file.read(upToCount: largestFileBytes), !block.isEmpty else {
          return false
        }
        hash.update([UInt8](block))
        return true
      }) {}
    }
    return Hexadecimal.text(of: hash.finalize())
  }

  /// Relative paths of all files, in the order of their bytes.
  private static func files(below root: String) throws -> [String] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: root)
    return names.filter { name in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: root + name, isDirectory: &isFolder)
        && !isFolder.boolValue
    }
    .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }
}
