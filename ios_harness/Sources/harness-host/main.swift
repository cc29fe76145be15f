// SPDX-License-Identifier: Apache-2.0

import CHost
import SoakRunner

/// Writes to a standard descriptor; a reader that has gone is no error.
func write(_ text: some Sequence<UInt8>, to descriptor: Int32) {
  let bytes = Array(text)
  _ = chost_write_all(descriptor, bytes, Int64(bytes.count))
}

func contract(_ arguments: [String]) -> Int32 {
  let paths = arguments.filter { $0 != "--witness" }
  guard paths.count == 1, let path = paths.first else {
    write("usage: harness-host contract FILE [--witness]\n".utf8, to: 2)
    return 2
  }
  do {
    let answer = try ContractReplay.answer(
      path: path, isWitness: paths.count < arguments.count)
    write(answer + "\n".utf8, to: 1)
    return 0
  } catch {
    write("harness-host contract: \(error)\n".utf8, to: 2)
    return 2
  }
}
let arguments = Array(CommandLine.arguments.dropFirst())
chost_exit_now(contract(Array(arguments.dropFirst())))
