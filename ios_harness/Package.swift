// swift-tools-version: 6.0
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let package = Package(
  name: "ios_harness",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .executable(name: "harness-host", targets: ["harness-host"]),
    .library(name: "StreamingLM", targets: ["StreamingLM"]),
    .library(name: "SoakRunner", targets: ["SoakRunner"]),
  ],
  targets: [
    .target(name: "CHost", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "HarnessCore", dependencies: ["CHost"]),
    .target(name: "StreamingLM", dependencies: ["HarnessCore"]),
    .target(name: "ReferenceEngine", dependencies: ["StreamingLM", "CHost"]),
    .target(name: "SoakRunner", dependencies: ["ReferenceEngine", "StreamingLM", "CHost"]),
    .target(name: "HostPlatform", dependencies: ["SoakRunner", "CHost"]),
    .executableTarget(name: "harness-host", dependencies: ["HostPlatform", "SoakRunner", "CHost"]),
    .testTarget(name: "HarnessCoreTests", dependencies: ["HarnessCore"]),
    .testTarget(
      name: "ReferenceEngineTests",
      dependencies: ["ReferenceEngine", "StreamingLM", "HarnessCore"], exclude: ["Fixtures"]),
    .testTarget(
      name: "StreamingLMTests", dependencies: ["StreamingLM", "ReferenceEngine"]),
    .testTarget(
      name: "SoakRunnerTests",
      dependencies: ["SoakRunner", "HostPlatform", "ReferenceEngine", "CHost", "harness-host"]),
  ],
  swiftLanguageModes: [.v6]
)
