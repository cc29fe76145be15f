// SPDX-License-Identifier: Apache-2.0

@testable import CoreMLEngine
import ReferenceEngine
import Testing

@Suite struct PieceTests {
  @Test func piecesCoverEveryIdOnceAndStayInsideTheCache() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      let length = Int.random(in: 2...200, using: &generator)
      let widths = [1, Int.random(in: 2...64, using: &generator)]
      let start = Int.random(in: 0..<length, using: &generator)
      let count = Int.random(in: 1...length - start, using: &generator)
      let pieces = PredictionPiece.cut(
        count: count, start: start, widths: widths, length: length)
      #expect(pieces.flatMap { Array($0.ids) } == Array(0..<count))
      #expect(pieces.allSatisfy { $0.start + $0.width <= length && $0.pad >= 0 })
      #expect(pieces.allSatisfy { $0.start == start + $0.ids.lowerBound })
    }
  }

  @Test func oneTokenIsNeverPadded() {
    #expect(
      PredictionPiece.cut(count: 1, start: 0, widths: [1, 64], length: 128)
        == [PredictionPiece(ids: 0..<1, start: 0, width: 1)])
  }

  @Test func aModelWithoutSingleTokensHasNothingForTheEndOfTheCache() {
    #expect(PredictionPiece.cut(count: 1, start: 100, widths: [64], length: 128).isEmpty)
  }

  @Test func theMaskShowsOwnRowAndThoseBefore() throws {
    let arrays = try StepArrays(width: 2, length: 5)
    arrays.fill([7, 8], start: 2)
    let masked = HalfFloat.masked
    arrays.mask.withElements(of: UInt16.self) { mask in
      #expect(Array(mask) == [0, 0, 0, masked, masked, 0, 0, 0, 0, masked])
    }
    #expect(HalfFloat.widen(masked) == -60_000)
  }

  @Test func paddingRepeatsTheLastIdAndCountsPositionsOn() throws {
    let arrays = try StepArrays(width: 4, length: 8)
    arrays.fill([7, 8], start: 3)
    arrays.ids.withElements(of: Int32.self) { #expect(Array($0) == [7, 8, 8, 8]) }
    arrays.positions.withElements(of: Int32.self) { #expect(Array($0) == [3, 4, 5, 6]) }
    arrays.row.withElements(of: Int32.self) { #expect($0[0] == 1) }
  }
}
