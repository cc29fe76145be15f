// SPDX-License-Identifier: Apache-2.0

import CHost
import HarnessCore
import HostPlatform
import SoakRunner

/// `harness-host` without arguments: the app on a virtual phone.
enum ServeCommand {
  private static let defaultPort = 28450
  private static let unusableStatus: Int32 = 2
  /// `EX_USAGE`: an unknown defect must not look like one that was not caught.
  private static let unknownDefectStatus: Int32 = 64

  /// Serves one launch and returns the exit status.
  static func run() -> Int32 {
    chost_ignore_broken_pipes()
    chost_no_huge_pages()
    do {
      return try serve(Environment.ofProcess(names: VirtualPhone.variables))
    } catch let error as UnknownDefectError {
      Console.error("\(error)")
      return unknownDefectStatus
    } catch {
      Console.error("\(error)")
      return unusableStatus
    }
  }

  private static func serve(_ environment: Environment) throws -> Int32 {
    let defects = try DefectCatalog.defects(named: environment["FLEET_DEFECT"] ?? "")
    guard let token = environment["FLEET_TOKEN"] else {
      throw EnvironmentError(name: "FLEET_TOKEN", expected: "the secret of this launch")
    }
    if let parent = try environment.count("FLEET_PARENT_PID"), !ParentProcess.tie(to: parent) {
      return ConditionsChannel.phoneGoneStatus
    }
    let launch = try SoakLaunch(
      platform: try VirtualPhone(environment), container: environment["HOME"] ?? ".",
      defects: defects)
    let app = try SoakApp(launch: launch)
    let listener = try listen(environment)
    if environment["FLEET_SOCKET"] != nil {
      try ConditionsChannel.watch(0) { launch.deliver($0) }
    }
    Console.output("fleet-harness listening".utf8)
    return app.run(listener: listener, token: token)
  }

  private static func listen(_ environment: Environment) throws -> Int32 {
    if let path = environment["FLEET_SOCKET"] {
      return try SystemError.check(chost_listen_unix(path), "listen on \(path)")
    }
    let port = try environment.count("FLEET_PORT") ?? defaultPort
    guard let port = UInt16(exactly: port) else {
      throw EnvironmentError(name: "FLEET_PORT", expected: "a TCP port")
    }
    return try SystemError.check(chost_listen_loopback(port), "listen on port \(port)")
  }
}
