// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// The defects that an app can be launched with. What their parameters mean stands in docs/protocol.md, 5.
public enum DefectCatalog {
  /// Makes the defect from its parameter.
  typealias Maker = @Sendable (_ parameter: Int) -> Defects

  /// One defect.
  struct Entry: Sendable {
    /// The parameter where none is given.
    let standard: Int
    let make: Maker

    init(_ standard: Int = 1, _ change: @escaping @Sendable (inout Defects, Int) -> Void) {
      self.standard = standard
      make = { parameter in Defects { change(&$0, parameter) } }
    }
  }

  /// Reads `FLEET_DEFECT`.
  ///
  /// - Parameter text: `name` or `name:parameter`; an empty text is a healthy app.
  /// - Returns: The app's behaviour.
  /// - Throws: `UnknownDefectError` for an unknown name or a parameter that is no count.
  public static func defects(named text: String) throws(UnknownDefectError) -> Defects {
    if text.isEmpty { return Defects() }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let entry = entries[String(parts[0])] else { throw UnknownDefectError(text: text) }
    if parts.count == 1 { return entry.make(entry.standard) }
    guard let parameter = Int(parts[1]), (1...mostParameter).contains(parameter) else {
      throw UnknownDefectError(text: text)
    }
    return entry.make(parameter)
  }

  /// Larger ones would overflow what is computed from them, and no test needs them.
  private static let mostParameter = 1 << 30

  /// All of them, by name.
  static let entries: [String: Entry] = [context, model, phone, records]
    .reduce(into: [:]) { all, some in all.merge(some) { first, _ in first } }

  /// What is done to the context.
  private static let context: [String: Entry] = [
    "never-trim": Entry { defects, _ in defects.rules.isTrimDue = { _, _, _ in false } },
    "trim-late": Entry { defects, late in
      defects.rules.isTrimDue = { rows, incoming, budget in rows + incoming > budget + late }
    },
    "trim-early": Entry { defects, early in
      defects.rules.isTrimDue = { rows, incoming, budget in rows + incoming > budget - early }
    },
    "trim-keeps-head": Entry { defects, _ in
      defects.rules.kept = { context, _, count in Array(context.prefix(count)) }
    },
    "trim-tail-off-by-one": Entry { defects, way in
      defects.rules.kept = { context, pinned, count in
        let (body, length) = (context.dropFirst(pinned), count - pinned)
        // 1: all one id too old. 2: the oldest of the tail is missing.
        let tail = way == 1 ? body.dropLast().suffix(length) : body.suffix(max(0, length - 1))
        return Array(context.prefix(pinned) + tail)
      }
    },
    "trim-drops-bos": Entry { defects, _ in
      defects.rules.kept = { context, _, count in Array(context.suffix(count)) }
    },
    "trim-forgets-count": Entry { defects, _ in defects.countsKeptRows = false },
    "trim-stale-state": Entry { defects, _ in defects.engine = { StaleTrimEngine($0) } },
    "double-feed-last": Entry { defects, _ in defects.engine = { DoubleFeedEngine($0) } },
    "drop-first-token": Entry { defects, _ in defects.engine = { DroppedTokenEngine($0) } },
    "resume-wrong-tail": Entry { defects, missing in
      let contract = defects.rules.resumed
      defects.rules.resumed = { accepted, start, pin, half in
        contract(accepted, start, pin, max(pin + 1, half - missing))
      }
    },
    "silent-truncation": Entry { defects, _ in
      defects.rules.fed = { used, rows, budget in Array(used.suffix(max(1, budget - rows))) }
    },
    "ignore-end-token": Entry { defects, _ in defects.endIDs = { _ in [] } },
    "constant-output": Entry(100) { defects, token in
      defects.engine = { ConstantOutputEngine($0, fromToken: token) }
    },
    "parity-drift": Entry { defects, _ in defects.engine = { DriftingEngine($0) } },
  ]

  /// What is done to state sets, and how fast.
  private static let model: [String: Entry] = [
    "no-evict": Entry { defects, _ in defects.hearsWarnings = false },
    "evict-keeps-memory": Entry { defects, _ in defects.engine = { KeptMemoryEngine($0) } },
    "evict-during-prediction": Entry { defects, _ in
      defects.engine = { UnawaitedEngine($0, ignoring: .release) }
    },
    "late-handler": Entry { defects, predictions in defects.handlerDelay = predictions },
    "overlap": Entry { defects, _ in
      defects.engine = { UnawaitedEngine($0, ignoring: .prediction) }
    },
    "state-per-token": Entry { defects, _ in defects.rules.remakesBeforeDecode = true },
    "make-before-release": Entry { defects, _ in
      defects.rules.makesBeforeRelease = true
      defects.engine = { engine in
        engine.mostStates = 2
        return engine
      }
    },
    "keeps-kv-in-background": Entry { defects, _ in defects.rules.releasesInBackground = false },
    "kv-grows": Entry(100) { defects, percent in
      defects.engine = { GrowingCacheEngine($0, percent: percent) }
    },
    "ane-fallback": Entry { defects, _ in
      defects.placement = { placement in
        ModelLoad.Placement(
          group: placement.group, device: "cpu", operationCount: placement.operationCount)
      }
    },
    "slow-load": Entry(4) { defects, times in defects.loadTimes = times },
    "slow-steady": Entry(30) { defects, percent in
      defects.speedShare = { _ in share(lessPercent: Double(percent)) }
    },
    "slow-decay": Entry(20) { defects, percent in
      defects.speedShare = { tokens in
        share(lessPercent: Double(percent) * Double(tokens) / 1000)
      }
    },
    "refeed-context": Entry { defects, _ in defects.engine = { RefeedingEngine($0) } },
  ]

  private static func share(lessPercent percent: Double) -> Double {
    let slowest = 0.05
    return max(slowest, 1 - percent / 100)
  }

  /// What is done to the phone, its memory and the app's life.
  private static let phone: [String: Entry] = [
    // 8 GB phones are told by `>= 8 GiB`, which is true on none of them.
    "naive-8gib": Entry { defects, _ in
      defects.bands = MemoryBands(floors: [(8 * MemoryBands.gib, .gb8), (0, .gb6)])
    },
    "int8-on-6gb": Entry { defects, _ in defects.weights = { _ in .int8 } },
    "wrong-budget": Entry(50) { defects, percent in
      defects.budget = { $0.scaled(toPercent: percent) }
    },
    "over-headroom": Entry(3) { defects, percent in defects.hoardPercent = percent },
    "leak": Entry(64) { defects, kibibytes in
      defects.leak = Defects.Leak(
        fromToken: 1, step: .phoneBytes(kibibytes * 1024), isDeclared: false)
    },
    "jetsam": Entry(600) { defects, token in
      defects.leak = Defects.Leak(
        fromToken: token, step: .hostBytes(jetsamStepHostBytes), isDeclared: true)
    },
    "crash": Entry(600) { $0.mishap = Defects.Mishap(kind: .crash, atToken: $1) },
    "hang": Entry(600) { $0.mishap = Defects.Mishap(kind: .hang, atToken: $1) },
    "exit-silently": Entry(600) { $0.mishap = Defects.Mishap(kind: .exit, atToken: $1) },
    "stops-early": Entry(600) { $0.mishap = Defects.Mishap(kind: .earlyEnd, atToken: $1) },
  ]

  private static let jetsamStepHostBytes = 2 * 1024 * 1024

  /// What is done to what a person and the host see.
  private static let records: [String: Entry] = [
    "no-trim-notice": Entry { defects, _ in defects.hiddenNotice = .trim },
    "no-evict-notice": Entry { defects, _ in defects.hiddenNotice = .eviction },
    "double-end": Entry { defects, _ in defects.turnEnds = 2 },
    "split-utf8": Entry { defects, _ in defects.assemblesText = false },
    "telemetry-gap": Entry(200) { $0.loss = .oneSample(from: UInt64($1)) },
    "telemetry-stops": Entry(200) { $0.loss = .everything(from: UInt64($1)) },
    "journal-differs": Entry(200) { $0.alteredSequence = $1 },
  ]
}

extension TokenBudget {
  fileprivate func scaled(toPercent percent: Int) -> TokenBudget {
    TokenBudget(
      memoryClass: memoryClass, policyTokens: max(2, tokens * percent / 100),
      modelCapacity: modelCapacity, scenarioTokens: scenarioTokens,
      kvCeilingTokens: kvCeilingTokens)
  }
}

/// `FLEET_DEFECT` names no defect.
public struct UnknownDefectError: Error, Equatable, CustomStringConvertible {
  /// What it says.
  public let text: String

  /// One line for a person.
  public var description: String { "no defect '\(text)'" }
}
