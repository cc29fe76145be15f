// SPDX-License-Identifier: Apache-2.0

import CHost

let arguments = Array(CommandLine.arguments.dropFirst())
switch arguments.first {
case nil: chost_exit_now(ServeCommand.run())
case "contract": chost_exit_now(ContractCommand.run(Array(arguments.dropFirst())))
default:
  Console.error("usage: harness-host [contract FILE [--witness]]")
  chost_exit_now(2)
}
