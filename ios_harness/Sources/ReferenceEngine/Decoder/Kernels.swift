// SPDX-License-Identifier: Apache-2.0

/// The inner loops of the decoder in plain Swift.
///
/// Counts are multiples of 32 where it is said: the compiler does not reorder a sum of floats by itself, so four
/// vectors of eight are kept apart by hand. `addProduct` is avoided: without an FMA instruction it is a call.
enum Kernels {
  @inline(__always)
  static func load(_ from: UnsafePointer<Float>, _ index: Int) -> SIMD8<Float> {
    UnsafeRawPointer(from + index).loadUnaligned(as: SIMD8<Float>.self)
  }

  @inline(__always)
  static func load(_ from: UnsafePointer<UInt16>, _ index: Int) -> SIMD8<Float> {
    HalfFloat.widen(UnsafeRawPointer(from + index).loadUnaligned(as: SIMD8<UInt16>.self))
  }

  @inline(__always)
  static func store(_ value: SIMD8<Float>, _ to: UnsafeMutablePointer<Float>, _ index: Int) {
    UnsafeMutableRawPointer(to + index).storeBytes(of: value, as: SIMD8<Float>.self)
  }

  /// Scalar product; `count` is a multiple of 32.
  @inline(__always)
  static func dot(_ a: UnsafePointer<Float>, _ b: UnsafePointer<Float>, _ count: Int) -> Float {
    var (first, second) = (SIMD8<Float>.zero, SIMD8<Float>.zero)
    var (third, fourth) = (SIMD8<Float>.zero, SIMD8<Float>.zero)
    var index = 0
    while index < count {
      first += load(a, index) * load(b, index)
      second += load(a, index &+ 8) * load(b, index &+ 8)
      third += load(a, index &+ 16) * load(b, index &+ 16)
      fourth += load(a, index &+ 24) * load(b, index &+ 24)
      index &+= 32
    }
    return ((first + second) + (third + fourth)).sum()
  }

  /// Scalar product with halves; `count` is a multiple of 32.
  @inline(__always)
  static func dot(_ a: UnsafePointer<Float>, _ b: UnsafePointer<UInt16>, _ count: Int) -> Float {
    var (first, second) = (SIMD8<Float>.zero, SIMD8<Float>.zero)
    var index = 0
    while index < count {
      first += load(a, index) * load(b, index)
      second += load(a, index &+ 8) * load(b, index &+ 8)
      index &+= 16
    }
    return (first + second).sum()
  }

  /// Scalar product of halves with `HalfFloat.rebias` times as much as is meant; `count` is a multiple of 16.
  @inline(__always)
  static func dot(
    halves a: UnsafePointer<UInt16>, rebiased b: UnsafePointer<Float>, _ count: Int
  ) -> Float {
    var (first, second) = (SIMD8<Float>.zero, SIMD8<Float>.zero)
    var index = 0
    while index < count {
      first += loadUnbiased(a, index) * load(b, index)
      second += loadUnbiased(a, index &+ 8) * load(b, index &+ 8)
      index &+= 16
    }
    return (first + second).sum()
  }

  @inline(__always)
  private static func loadUnbiased(_ from: UnsafePointer<UInt16>, _ index: Int) -> SIMD8<Float> {
    HalfFloat.unbiased(UnsafeRawPointer(from + index).loadUnaligned(as: SIMD8<UInt16>.self))
  }

  /// `sum += weight * halves`; `count` is a multiple of 8.
  @inline(__always)
  static func add(
    _ weight: Float, _ halves: UnsafePointer<UInt16>, to sum: UnsafeMutablePointer<Float>,
    _ count: Int
  ) {
    var index = 0
    while index < count {
      store(load(sum, index) + load(halves, index) * weight, sum, index)
      index &+= 8
    }
  }

  /// `out[m][row] = matrix[row] * input[m]`, or added to it. A row of the matrix is read and widened once for all
  /// inputs; `scratch` has room for one.
  static func multiply(
    _ matrix: Matrix, _ input: UnsafePointer<Float>, count: Int,
    into out: UnsafeMutablePointer<Float>, scratch: UnsafeMutablePointer<Float>,
    adding: Bool = false
  ) {
    if count == 1 { return multiply(matrix, input, into: out, scratch: scratch, adding: adding) }
    for row in 0..<matrix.rows {
      let weights = matrix.values + row &* matrix.columns
      widen(weights, matrix.columns, into: scratch)
      for m in 0..<count {
        let product = dot(UnsafePointer(scratch), input + m &* matrix.columns, matrix.columns)
        let place = m &* matrix.rows &+ row
        out[place] = adding ? out[place] + product : product
      }
    }
  }

  /// Finite halves to floats; `count` is a multiple of 8.
  @inline(__always)
  static func widen(
    _ halves: UnsafePointer<UInt16>, _ count: Int, into out: UnsafeMutablePointer<Float>
  ) {
    var index = 0
    while index < count {
      store(loadUnbiased(halves, index) * HalfFloat.rebias, out, index)
      index &+= 8
    }
  }

  /// `out[row] = matrix[row] * input`: the input takes the factor that the weights lack, once for all rows.
  ///
  /// An input from 65536 on comes out infinite, as it would in half precision.
  private static func multiply(
    _ matrix: Matrix, _ input: UnsafePointer<Float>, into out: UnsafeMutablePointer<Float>,
    scratch: UnsafeMutablePointer<Float>, adding: Bool
  ) {
    for index in stride(from: 0, to: matrix.columns, by: 8) {
      store(load(input, index) * HalfFloat.rebias, scratch, index)
    }
    for row in 0..<matrix.rows {
      let weights = matrix.values + row &* matrix.columns
      let product = dot(halves: weights, rebiased: scratch, matrix.columns)
      out[row] = adding ? out[row] + product : product
    }
  }

  /// Root mean square norm with a gain; `count` is a multiple of 32.
  static func normalize(
    _ input: UnsafePointer<Float>, gain: UnsafePointer<Float>, epsilon: Float, count: Int,
    into out: UnsafeMutablePointer<Float>
  ) {
    let scale = 1 / (dot(input, input, count) / Float(count) + epsilon).squareRoot()
    for index in stride(from: 0, to: count, by: 8) {
      store(load(input, index) * scale * load(gain, index), out, index)
    }
  }

  /// Turns scores into weights that sum to 1. The buffer has room up to the next multiple of 8.
  static func softmax(_ scores: UnsafeMutablePointer<Float>, count: Int) {
    let padded = (count + 7) & ~7
    for index in count..<padded { scores[index] = -.infinity }
    var highest = SIMD8<Float>(repeating: -.infinity)
    for index in stride(from: 0, to: padded, by: 8) {
      let vector = load(scores, index)
      highest.replace(with: vector, where: vector .> highest)
    }
    let top = highest.max()
    var total = SIMD8<Float>.zero
    for index in stride(from: 0, to: padded, by: 8) {
      let weight = exponential(load(scores, index) - top)
      total += weight
      store(weight, scores, index)
    }
    let scale = 1 / total.sum()
    for index in stride(from: 0, to: padded, by: 8) {
      store(load(scores, index) * scale, scores, index)
    }
  }

  /// `gate / (1 + exp(-gate)) * up`, in place of `gate`; `count` is a multiple of 8.
  static func swiglu(
    _ gate: UnsafeMutablePointer<Float>, _ up: UnsafePointer<Float>, count: Int
  ) {
    for index in stride(from: 0, to: count, by: 8) {
      let value = load(gate, index)
      store(value / (1 + exponential(-value)) * load(up, index), gate, index)
    }
  }

  /// e to the power of x, to about 2 units in the last place; under -87 it is 0, and NaN stays NaN.
  ///
  /// `2^n * 2^f` with `f` in -0.5...0.5, by the Taylor series of `2^f`.
  @inline(__always)
  static func exponential(_ x: SIMD8<Float>) -> SIMD8<Float> {
    let isTiny = x .< -87
    let held = x.replacing(with: 88, where: x .> 88).replacing(with: -87, where: isTiny)
    let power = held * 1.442_695
    // Adding 1.5 * 2^23 leaves the nearest whole number in the low bits; converting a NaN would trap.
    let shifted = power + 12_582_912
    let whole = shifted - 12_582_912
    let f = held - whole * 0.693_359_4 - whole * -0.000_212_194_44
    var series = SIMD8<Float>(repeating: 1 / 5040)
    for coefficient: Float in [1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1, 1] {
      series = series * f + coefficient
    }
    let exponent = unsafeBitCast(shifted, to: SIMD8<UInt32>.self) &- 0x4B40_0000 &+ 127
    let scale = unsafeBitCast(exponent &<< 23, to: SIMD8<Float>.self)
    return (series * scale).replacing(with: 0, where: isTiny)
  }
}
