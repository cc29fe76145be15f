// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import StreamingLM

/// Finds out once, after loading, whether a state that the prefill function filled serves the decode function.
///
/// Apple does not say. A model may refuse the other's state, or compute without it and say nothing, so the decode step
/// is taken twice: with the rows copied into a state of its own, and with the other's state. Only equal logits will do.
enum SharingProbe {
  /// Ids of the probe; any will do.
  private static let id: Token = 0
  /// Halves that were computed twice from the same rows differ by less.
  private static let tolerance: Float = 0.01

  /// - Throws: `CoreMLError` when copying does not work either.
  static func run(_ model: CoreMLModel) throws(CoreMLError) -> StateSharing {
    guard case .states = model.memory, let width = model.widths.last, model.widths.count == 2,
      width < model.length
    else { return .notNeeded }
    let copied = try logits(model, width, isShared: false)
    do throws(CoreMLError) {
      let shared = try logits(model, width, isShared: true)
      let difference = zip(copied, shared).map { abs($0 - $1) }.max() ?? 0
      return difference <= tolerance ? .shared : .copied
    } catch { return .copied }
  }

  /// Logits of a decode step after a prefill chunk.
  private static func logits(
    _ model: CoreMLModel, _ width: Int, isShared: Bool
  ) throws(CoreMLError) -> [Float] {
    let memories = try model.makeMemories(isShared: isShared)
    let ids = Array(repeating: id, count: width)
    _ = try model.predict(ids[...], start: 0, width: width, memories)
    let (array, _) = try model.predict([id], start: width, width: 1, memories)
    let values = UnsafeMutableBufferPointer<Float>.allocate(capacity: model.vocabularySize)
    defer { values.deallocate() }
    try array.copyHalves(into: values)
    return Array(values)
  }
}
