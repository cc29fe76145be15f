// SPDX-License-Identifier: Apache-2.0

import Foundation
@testable import ReferenceEngine
import Testing

@Suite struct NumericsTests {
  #if !(os(macOS) && arch(x86_64))  // there is no Float16 on Intel Macs
    @Test func everyHalfWidensToWhatItIs() {
      let wrong = (UInt16.min...UInt16.max).filter { bits in
        let expected = Float(Float16(bitPattern: bits))
        let values = [HalfFloat.widen(bits), HalfFloat.widen(SIMD8<UInt16>(repeating: bits))[7]]
        return !values.allSatisfy { $0 == expected || $0.isNaN && expected.isNaN }
      }
      #expect(wrong.isEmpty)
    }

    @Test func narrowingRoundsAsTheMachineDoes() {
      var generator = SystemRandomNumberGenerator()
      let edges: [Float] = [
        0, -0, 65_504, 65_519.99, 65_520, 1e9, -1e9, 5.96e-8, 2.98e-8, 2.99e-8, 6.1e-5, 6.09e-5,
        .infinity, -.infinity, 1, 1.000_488_3, 1.000_488_2, 1.001_464_9,
      ]
      let random = (0..<20_000).map { _ in
        Float(bitPattern: UInt32.random(in: 0x3200_0000...0x4800_0000, using: &generator))
      }
      let wrong = (edges + random).filter { HalfFloat.narrow($0) != Float16($0).bitPattern }
      #expect(wrong.isEmpty)
    }
  #endif

  @Test func everyFiniteHalfIsItsUnbiasedValueTimesTheFactorLaneByLane() {
    let finite = (UInt16.min...UInt16.max).filter { $0 & 0x7C00 != 0x7C00 }
    let wrong = stride(from: 0, to: finite.count, by: 8).filter { start in
      let eight = SIMD8(finite[start..<start + 8])
      let (values, wide) = (HalfFloat.unbiased(eight) * HalfFloat.rebias, HalfFloat.widen(eight))
      return (0..<8).contains { lane in
        let expected = HalfFloat.widen(finite[start + lane]).bitPattern
        return values[lane].bitPattern != expected || wide[lane].bitPattern != expected
      }
    }
    #expect(wrong.isEmpty)
  }

  @Test(arguments: [1, 2, 8], [false, true])
  func aProductIsThatOfTheWeightsValuesForAnyBlock(_ count: Int, _ adding: Bool) {
    let (rows, columns) = (5, 32)
    let halves = (0..<rows * columns).map { HalfFloat.narrow(Float($0 % 23 - 11) * 0.03) }
    let input = (0..<count * columns).map { Float($0 % 17 - 8) * 1e-3 }
    var out = [Float](repeating: 2, count: count * rows)
    var scratch = [Float](repeating: 0, count: columns)
    halves.withUnsafeBufferPointer { values in
      guard let start = values.baseAddress else { return }
      Kernels.multiply(
        Matrix(values: start, rows: rows, columns: columns), input, count: count, into: &out,
        scratch: &scratch, adding: adding)
    }
    for (place, found) in out.enumerated() {
      let (m, row) = (place / rows, place % rows)
      let expected = (0..<columns).reduce(adding ? 2.0 : 0.0) { sum, column in
        sum + Double(HalfFloat.widen(halves[row * columns + column]))
          * Double(input[m * columns + column])
      }
      #expect(abs(Double(found) - expected) < 1e-6)
    }
  }

  @Test func notANumberStaysNotANumber() {
    #expect(HalfFloat.widen(HalfFloat.narrow(.nan)).isNaN)
    #expect(Kernels.exponential(SIMD8(repeating: .nan))[3].isNaN)
  }

  @Test func theExponentialIsCloseEverywhere() {
    let errors = (-8600...880).map { step in
      let x = Float(step) / 100
      let value = Kernels.exponential(SIMD8(repeating: x))[0]
      return abs(Double(value) / exp(Double(x)) - 1)
    }
    #expect(errors.allSatisfy { $0 < 4e-7 })
    #expect(Kernels.exponential(SIMD8(repeating: -60_000))[0] == 0)
    #expect(Kernels.exponential(SIMD8(repeating: -.infinity))[0] == 0)
  }

  @Test(arguments: [1, 7, 8, 9, 64])
  func weightsOfSoftmaxSumToOneWhateverTheCount(_ count: Int) {
    var scores = (0..<72).map { Float($0 % 5) - 70_000 }
    scores.withUnsafeMutableBufferPointer { buffer in
      if let start = buffer.baseAddress { Kernels.softmax(start, count: count) }
    }
    #expect(abs(scores[..<count].reduce(0, +) - 1) < 1e-5)
    #expect(scores[..<count].allSatisfy { $0 > 0 })
  }

  @Test func aDotProductOfHalvesIsThatOfTheirValues() {
    let floats = (0..<64).map { Float($0) * 0.25 - 3 }
    let halves = (0..<64).map { HalfFloat.narrow(Float($0) * 0.5) }
    let expected = zip(floats, halves).reduce(Float(0)) { $0 + $1.0 * HalfFloat.widen($1.1) }
    #expect(Kernels.dot(floats, halves, 64) == expected)
    #expect(Kernels.dot(floats, floats, 64) == floats.reduce(0) { $0 + $1 * $1 })
  }
}
