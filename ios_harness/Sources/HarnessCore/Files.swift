// SPDX-License-Identifier: Apache-2.0

import CHost

/// Whole files and folders, without Foundation.
public enum Files {
  /// Reads a whole file.
  ///
  /// - Parameters:
  ///   - path: Absolute, or relative to the working directory.
  ///   - limitBytes: Larger files are refused: what a host pushes is not trusted to be small.
  /// - Returns: The file's bytes.
  /// - Throws: `SystemError` when the file cannot be read or is larger than the limit.
  public static func read(_ path: String, limitBytes: Int) throws(SystemError) -> [UInt8] {
    let descriptor = try SystemError.check(chost_open_read(path), "open \(path)")
    defer { chost_close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = try SystemError.check(
        chost_read(descriptor, &chunk, Int64(chunk.count)), "read \(path)")
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk[0..<Int(count)])
      if bytes.count > limitBytes { throw SystemError("read \(path)", code: Self.tooLarge) }
    }
  }

  /// Whether a file can be read.
  public static func exists(_ path: String) -> Bool {
    let descriptor = chost_open_read(path)
    if descriptor >= 0 { chost_close(descriptor) }
    return descriptor >= 0
  }

  /// Makes a folder and the folders above it.
  ///
  /// - Parameter path: Relative to the working directory, or absolute.
  /// - Throws: `SystemError` naming the folder that could not be made.
  public static func makeFolder(_ path: String) throws(SystemError) {
    var whole = path.hasPrefix("/") ? "/" : ""
    for part in path.split(separator: "/") {
      whole += part
      try SystemError.check(chost_make_folder(whole), "make folder \(whole)")
      whole += "/"
    }
  }

  /// `EFBIG`, the same number on Linux and Darwin.
  private static let tooLarge: Int32 = 27
}
