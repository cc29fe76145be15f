// SPDX-License-Identifier: Apache-2.0

/// SHA-256 of a stream of bytes, without CryptoKit, so that the same code runs on Linux.
///
/// Source: FIPS 180-4, section 6.2.
public struct SHA256: Sendable {
  private var state = Self.initialState
  /// Bytes that do not fill a block yet: the first `held` of 64.
  private var block = [UInt8](repeating: 0, count: blockBytes)
  private var held = 0
  private var byteCount: UInt64 = 0
  private var schedule = [UInt32](repeating: 0, count: 64)

  private static let blockBytes = 64

  /// The hash of no bytes so far.
  public init() {}

  /// Takes in more bytes.
  @inlinable
  public mutating func update(_ bytes: some Sequence<UInt8>) {
    let isTaken: Void? = bytes.withContiguousStorageIfAvailable {
      absorb(UnsafeRawBufferPointer($0))
    }
    if isTaken == nil { Array(bytes).withUnsafeBytes { absorb($0) } }
  }

  /// Ends the stream.
  ///
  /// - Returns: The digest, 32 bytes.
  public consuming func finalize() -> [UInt8] {
    let bitCount = byteCount * 8
    let zeros = (Self.blockBytes + 55 - held) % Self.blockBytes
    update([0x80] + [UInt8](repeating: 0, count: zeros))
    update((0..<8).map { UInt8(truncatingIfNeeded: bitCount >> (56 - 8 * $0)) })
    return state.flatMap { word in
      (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) }
    }
  }

  /// Hashes bytes at once.
  ///
  /// - Returns: 64 hexadecimal digits.
  public static func hexadecimal(of bytes: some Sequence<UInt8>) -> String {
    var hash = SHA256()
    hash.update(bytes)
    return Hexadecimal.text(of: hash.finalize())
  }

  /// Whole blocks are hashed where they lie: each line of a journal passes here.
  @usableFromInline
  mutating func absorb(_ bytes: UnsafeRawBufferPointer) {
    byteCount += UInt64(bytes.count)
    var offset = 0
    if held > 0 {
      offset = hold(bytes, from: 0)
      if held < Self.blockBytes { return }
      held = 0
      block.withUnsafeBytes { Self.compress($0, &state, &schedule) }
    }
    while bytes.count - offset >= Self.blockBytes {
      let end = offset + Self.blockBytes
      Self.compress(UnsafeRawBufferPointer(rebasing: bytes[offset..<end]), &state, &schedule)
      offset = end
    }
    _ = hold(bytes, from: offset)
  }

  /// Fills the block that is not full yet and returns where the rest begins.
  private mutating func hold(_ bytes: UnsafeRawBufferPointer, from offset: Int) -> Int {
    let end = min(bytes.count, offset + Self.blockBytes - held)
    for index in offset..<end {
      block[held] = bytes[index]
      held += 1
    }
    return end
  }

  private static func compress(
    _ block: UnsafeRawBufferPointer, _ state: inout [UInt32], _ schedule: inout [UInt32]
  ) {
    schedule.withUnsafeMutableBufferPointer { words in
      for index in 0..<16 {
        words[index] = UInt32(
          bigEndian: block.loadUnaligned(fromByteOffset: index * 4, as: UInt32.self))
      }
      for index in 16..<64 {
        let early = words[index - 15]
        let late = words[index - 2]
        let sigma0 = rotate(early, 7) ^ rotate(early, 18) ^ (early >> 3)
        let sigma1 = rotate(late, 17) ^ rotate(late, 19) ^ (late >> 10)
        words[index] = words[index - 16] &+ sigma0 &+ words[index - 7] &+ sigma1
      }
      mix(words, &state)
    }
  }

  private static func mix(
    _ schedule: UnsafeMutableBufferPointer<UInt32>, _ state: inout [UInt32]
  ) {
    var (a, b, c, d) = (state[0], state[1], state[2], state[3])
    var (e, f, g, h) = (state[4], state[5], state[6], state[7])
    constants.withUnsafeBufferPointer { constants in
      for index in 0..<64 {
        let sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
        let choice = (e & f) ^ (~e & g)
        let first = h &+ sum1 &+ choice &+ constants[index] &+ schedule[index]
        let sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
        let majority = (a & b) ^ (a & c) ^ (b & c)
        (h, g, f, e) = (g, f, e, d &+ first)
        (d, c, b, a) = (c, b, a, first &+ sum0 &+ majority)
      }
    }
    for (index, word) in [a, b, c, d, e, f, g, h].enumerated() { state[index] &+= word }
  }

  private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word >> count | word << (32 - count)
  }

  private static let initialState: [UInt32] = [
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a,
    0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
  ]

  private static let constants: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4,
    0xab1c_5ed5, 0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe,
    0x9bdc_06a7, 0xc19b_f174, 0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f,
    0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da, 0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7,
    0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967, 0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc,
    0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85, 0xa2bf_e8a1, 0xa81a_664b,
    0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070, 0x19a4_c116,
    0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7,
    0xc671_78f2,
  ]
}
