// SPDX-License-Identifier: Apache-2.0

/// IEEE 754 half precision by integer arithmetic: Swift's `Float16` is missing on Intel Macs, and without F16C each of
/// its conversions is a call.
public enum HalfFloat {
  /// -60000: what a mask adds to a score that must not count. Half of it would be enough; -inf would make rows of nothing
  /// but masked scores undefined.
  public static let masked: UInt16 = 0xFB53
  /// 2 to the power of 112: moves an exponent that is biased by 15 to one that is biased by 127.
  static let rebias = Float(bitPattern: 0x7780_0000)

  /// The value of a half; exact, infinities and NaN included.
  public static func widen(_ half: UInt16) -> Float {
    let bits = UInt32(half & 0x7FFF) << 13
    let magnitude =
      half & 0x7C00 == 0x7C00
      ? Float(bitPattern: bits | 0x7F80_0000) : Float(bitPattern: bits) * rebias
    return half & 0x8000 == 0 ? magnitude : -magnitude
  }

  /// Eight halves at once, without a comparison: the compiler takes those of unsigned lanes one by one.
  @inline(__always)
  static func widen(_ halves: SIMD8<UInt16>) -> SIMD8<Float> {
    let wide = lanes(halves)
    let scaled = unsafeBitCast((wide & 0x7FFF) &<< 13, to: SIMD8<Float>.self) * rebias
    // Bit 30 for infinities and NaN, whose exponent has come out as 143; three more bits make it 255.
    let special = (((wide & 0x7C00) &+ 0x0400) & 0x8000) &<< 15
    let magnitude = unsafeBitCast(scaled, to: SIMD8<UInt32>.self) | (special &- special &>> 3)
    return unsafeBitCast(magnitude | (wide & 0x8000) &<< 16, to: SIMD8<Float>.self)
  }

  /// The bits of eight halves, in words. Not by `init(truncatingIfNeeded:)`: that is a call that takes lane by lane.
  @inline(__always)
  private static func lanes(_ halves: SIMD8<UInt16>) -> SIMD8<UInt32> {
    // Little endian: the first of a pair is the low one.
    let pairs = unsafeBitCast(halves, to: SIMD4<UInt32>.self)
    var wide = SIMD8<UInt32>()
    wide.evenHalf = pairs & 0xFFFF
    wide.oddHalf = pairs &>> 16
    return wide
  }

  /// Eight finite halves at once, each divided by `rebias`: three instructions where `widen` takes ten.
  @inline(__always)
  static func unbiased(_ halves: SIMD8<UInt16>) -> SIMD8<Float> {
    // An arithmetic shift puts exponent and fraction in their places and copies the sign into three bits between.
    let shifted = unsafeBitCast(lanes(halves) &<< 16, to: SIMD8<Int32>.self) &>> 3
    return unsafeBitCast(shifted & Int32(bitPattern: 0x8FFF_FFFF), to: SIMD8<Float>.self)
  }

  /// The nearest half; ties go to the even one, what is too large to infinity.
  public static func narrow(_ value: Float) -> UInt16 {
    let sign = UInt16(truncatingIfNeeded: value.bitPattern >> 16) & 0x8000
    let bits = value.bitPattern & 0x7FFF_FFFF
    if bits > 0x7F80_0000 { return sign | 0x7E00 }
    if bits >= 0x477F_F000 { return sign | 0x7C00 }
    if bits < 0x3880_0000 { return sign | subnormal(Float(bitPattern: bits)) }
    let rounded = bits - 0x3800_0000 + 0x0FFF + (bits >> 13 & 1)
    return sign | UInt16(truncatingIfNeeded: rounded >> 13)
  }

  /// Adding 0.5 leaves the half's fraction in the low bits of the sum, rounded by the machine.
  private static func subnormal(_ magnitude: Float) -> UInt16 {
    UInt16(truncatingIfNeeded: (magnitude + 0.5).bitPattern - 0x3F00_0000)
  }
}
