// SPDX-License-Identifier: Apache-2.0

/// One call of Core ML.
struct PredictionPiece: Equatable {
  /// Ids of it that count; the rest up to `width` is padding.
  let ids: Range<Int>
  /// Row of the first id.
  let start: Int
  /// Tokens that the function takes.
  let width: Int

  /// Ids that are fed and do not count.
  var pad: Int { width - ids.count }

  /// Cuts a chunk into calls of the widths that a model offers.
  ///
  /// A padded call writes its padding into the rows after the ids. They are overwritten before they are seen, but they
  /// must exist: at the end of the cache the rest is fed one by one.
  ///
  /// - Parameters:
  ///   - count: Ids to feed.
  ///   - start: Row of the first.
  ///   - widths: What the model offers, at least one.
  ///   - length: Rows of the cache.
  /// - Returns: Calls in order; empty when a model without a width of 1 has no room for its padding.
  static func cut(count: Int, start: Int, widths: [Int], length: Int) -> [PredictionPiece] {
    var pieces: [PredictionPiece] = []
    var fed = 0
    while fed < count {
      let fitting = widths.filter { start + fed + $0 <= length }.sorted()
      // The narrowest that takes all of the rest, else the widest.
      guard let width = fitting.first(where: { $0 >= count - fed }) ?? fitting.last else {
        return []
      }
      let end = min(count, fed + width)
      pieces.append(PredictionPiece(ids: fed..<end, start: start + fed, width: width))
      fed = end
    }
    return pieces
  }
}
