// SPDX-License-Identifier: Apache-2.0

@preconcurrency import CoreML
import HarnessCore
import StreamingLM

/// One model on each choice of processors: what it costs, and where it really runs.
public enum ComputeLadder {
  /// From what Apple advises to what always works.
  public static let units: [MLComputeUnits] = [.all, .cpuAndNeuralEngine, .cpuAndGPU, .cpuOnly]

  /// What one choice gave.
  public struct Rung: Sendable, Equatable {
    /// The choice.
    public let units: MLComputeUnits
    /// Operations by kind and processor, of all functions.
    public let placement: [PlacementCount]
    /// Time until the engine stood, in milliseconds.
    public let loadMs: Double
    /// Time of one chunk of the widest width, in milliseconds.
    public let prefillMs: Double
    /// Median time of a decode step, in milliseconds.
    public let decodeMs: Double
    /// Growth of the footprint by model and state set, in bytes.
    public let footprintBytes: Int
    /// Why the choice does not work; the numbers are 0 then.
    public let failure: CoreMLError?
  }

  /// Tries all choices one after the other, each with an engine of its own that is gone before the next.
  ///
  /// - Parameters:
  ///   - files: Compiled models.
  ///   - steps: Decode steps that are timed, at least 1.
  ///   - footprint: Reads the footprint of the process in bytes.
  ///   - willDo: Called before each dangerous act.
  /// - Returns: One rung a choice.
  public static func climb(
    _ files: [CoreMLStageFiles], steps: Int = 32, footprint: () -> Int,
    willDo: @escaping (CoreMLAct, String) -> Void = { _, _ in }
  ) async -> [Rung] {
    var rungs: [Rung] = []
    for units in Self.units {
      var placement: [PlacementCount] = []
      for function in files.flatMap({ [$0.decode, $0.prefill] }).compactMap(\.self) {
        placement += (try? await PlacementCount.counts(of: function, units: units)) ?? []
      }
      rungs.append(measure(files, units, placement, steps, footprint, willDo))
    }
    return rungs
  }

  private static func measure(
    _ files: [CoreMLStageFiles], _ units: MLComputeUnits, _ placement: [PlacementCount],
    _ steps: Int, _ footprint: () -> Int, _ willDo: @escaping (CoreMLAct, String) -> Void
  ) -> Rung {
    let clock = LaunchClock()
    let before = footprint()
    do throws(CoreMLError) {
      let engine = try CoreMLEngine(
        files: files, setting: .init(units: units), willDo: willDo)
      let loadMs = milliseconds(clock)
      let (prefillMs, decodeMs) = try time(engine, steps)
      return Rung(
        units: units, placement: placement, loadMs: loadMs, prefillMs: prefillMs,
        decodeMs: decodeMs, footprintBytes: footprint() - before, failure: nil)
    } catch {
      return Rung(
        units: units, placement: placement, loadMs: 0, prefillMs: 0, decodeMs: 0,
        footprintBytes: 0, failure: error)
    }
  }

  private static func time(
    _ engine: CoreMLEngine, _ steps: Int
  ) throws(CoreMLError) -> (prefillMs: Double, decodeMs: Double) {
    do throws(EngineError) {
      let clock = LaunchClock()
      try engine.makeState(for: .conversation)
      let width = min(engine.widths.last ?? 1, engine.capacity / 2)
      let beganMs = milliseconds(clock)
      try engine.predict(
        Chunk(ids: Array(repeating: 0, count: width), start: 0, purpose: .turn))
      let prefillMs = milliseconds(clock) - beganMs
      var times: [Double] = []
      for step in 0..<min(max(1, steps), engine.capacity - width) {
        let stepMs = milliseconds(clock)
        try engine.predict(Chunk(ids: [0], start: width + step, purpose: .decode))
        times.append(milliseconds(clock) - stepMs)
      }
      return (prefillMs, times.sorted()[times.count / 2])
    } catch { throw .prediction(error.description) }
  }

  private static func milliseconds(_ clock: LaunchClock) -> Double { Double(clock.nowNs) / 1e6 }
}
