// SPDX-License-Identifier: Apache-2.0

import SoakRunner

/// `harness-host contract FILE [--witness]`
enum ContractCommand {
  /// Returns the exit status: 0, or 2 when the file cannot be answered.
  static func run(_ arguments: [String]) -> Int32 {
    let paths = arguments.filter { $0 != "--witness" }
    guard paths.count == 1 else {
      Console.error("usage: harness-host contract FILE [--witness]")
      return 2
    }
    do {
      Console.output(
        try ContractReplay.answer(path: paths[0], isWitness: paths.count < arguments.count))
      return 0
    } catch {
      Console.error("\(error)")
      return 2
    }
  }
}
