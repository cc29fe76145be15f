// swift-tools-version: 6.0
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

// The manifest is compiled for the machine that builds. On a Mac, also when it builds for iOS, `import CoreML` is the
// system's; on Linux it is our stand-in, which is test equipment.
#if os(Linux)
  let coreML: [Target.Dependency] = ["CoreML"]
  // Unoptimized, each operation on a SIMD vector is a call: tests with the decoder would take minutes.
  let systemProducts: [Product] = []
  let decoderSettings: [SwiftSetting] = [.unsafeFlags(["-O"], .when(configuration: .debug))]
  let systemTargets: [Target] = [
    .target(name: "CoreML", dependencies: ["ReferenceEngine", "HarnessCore"]),
    .testTarget(
      name: "CoreMLEngineTests",
      dependencies: [
        "CoreMLEngine", "CoreML", "SoakRunner", "ReferenceEngine", "StreamingLM", "HarnessCore",
      ]),
  ]
#else
  let coreML: [Target.Dependency] = []
  let decoderSettings: [SwiftSetting] = []
  let systemProducts: [Product] = [.library(name: "ApplePlatform", targets: ["ApplePlatform"])]
  let systemTargets: [Target] = [
    .target(name: "CApple"),
    .target(
      name: "ApplePlatform", dependencies: ["CApple", "CHost", "HarnessCore", "SoakRunner"]),
  ]
#endif

let package = Package(
  name: "ios_harness",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: systemProducts + [
    .executable(name: "harness-host", targets: ["harness-host"]),
    .library(name: "StreamingLM", targets: ["StreamingLM"]),
    .library(name: "CoreMLEngine", targets: ["CoreMLEngine"]),
    .library(name: "SoakProbe", targets: ["SoakProbe"]),
    .library(name: "SoakRunner", targets: ["SoakRunner"]),
  ],
  targets: systemTargets + [
    .target(name: "CHost", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "HarnessCore", dependencies: ["CHost"]),
    .target(name: "StreamingLM", dependencies: ["HarnessCore", "CHost"]),
    .target(
      name: "ReferenceEngine", dependencies: ["StreamingLM", "CHost"],
      swiftSettings: decoderSettings),
    .target(
      name: "CoreMLEngine",
      dependencies: ["SoakRunner", "ReferenceEngine", "StreamingLM", "HarnessCore"] + coreML),
    .target(name: "SoakRunner", dependencies: ["ReferenceEngine", "StreamingLM", "CHost"]),
    .target(name: "HostPlatform", dependencies: ["SoakRunner", "CHost"]),
    .target(name: "SoakProbe", dependencies: ["SoakRunner", "StreamingLM", "HarnessCore"]),
    .executableTarget(
      name: "harness-bench",
      dependencies: [
        "SoakProbe", "ReferenceEngine", "StreamingLM", "HarnessCore", "HostPlatform", "CHost",
      ]),
    .executableTarget(
      name: "probe-example",
      dependencies: ["SoakProbe", "StreamingLM", "HarnessCore", "HostPlatform", "CHost"]),
    .executableTarget(name: "harness-host", dependencies: ["HostPlatform", "SoakRunner", "CHost"]),
    .testTarget(name: "HarnessCoreTests", dependencies: ["HarnessCore"]),
    .testTarget(
      name: "ReferenceEngineTests",
      dependencies: ["ReferenceEngine", "StreamingLM", "HarnessCore"], exclude: ["Fixtures"]),
    .testTarget(
      name: "StreamingLMTests", dependencies: ["StreamingLM", "ReferenceEngine"]),
    .testTarget(
      name: "SoakRunnerTests",
      dependencies: [
        "SoakRunner", "SoakProbe", "HostPlatform", "ReferenceEngine", "CHost", "harness-host",
        "probe-example",
      ]),
  ],
  swiftLanguageModes: [.v6]
)
