// SPDX-License-Identifier: Apache-2.0

import SoakRunner
import SwiftUI

/// The numbers of a running soak.
struct SoakDashboard: View {
  let snapshot: SoakSnapshot
  let tokensPerS: Double

  var body: some View {
    VStack(alignment: .leading, spacing: 20) {
      header
      speed
      LimitBar(
        title: "Context", value: snapshot.rows, limit: snapshot.budget,
        text: "\(snapshot.rows) of \(snapshot.budget ?? 0) tokens", tint: .blue)
      LimitBar(
        title: "Memory", value: snapshot.footprintBytes, limit: snapshot.limitBytes,
        text: memoryText, tint: .orange)
      conditions
    }
    .monospacedDigit()
  }

  private var header: some View {
    VStack(alignment: .leading, spacing: 2) {
      Text(snapshot.model ?? "no model").font(.headline)
      Text("run \(snapshot.runID ?? "none")").font(.footnote).foregroundStyle(.secondary)
    }
  }

  private var speed: some View {
    VStack(alignment: .leading, spacing: 0) {
      Text(String(format: "%.1f", tokensPerS)).font(.system(size: 64, weight: .semibold))
      Text("tokens a second, \(snapshot.tokensTotal) in all, \(snapshot.phase.rawValue)")
        .font(.footnote).foregroundStyle(.secondary)
    }
  }

  private var memoryText: String {
    let footprint = Self.mebibytes(snapshot.footprintBytes)
    guard let limit = snapshot.limitBytes else { return "\(footprint) MiB, limit not known" }
    return "\(footprint) of \(Self.mebibytes(limit)) MiB"
  }

  private var conditions: some View {
    HStack(spacing: 16) {
      Label(snapshot.thermal.rawValue, systemImage: "thermometer.medium")
        .foregroundStyle(snapshot.thermal == .nominal ? Color.secondary : Color.red)
      if let percent = snapshot.batteryPercent {
        Label("\(percent) %", systemImage: "battery.100")
      }
      if snapshot.isLowPower { Label("low power", systemImage: "leaf") }
    }
    .font(.footnote)
  }

  private static func mebibytes(_ bytes: Int) -> Int { bytes / 1_048_576 }
}

/// A bar with its numbers below it.
private struct LimitBar: View {
  let title: String
  let value: Int
  let limit: Int?
  let text: String
  let tint: Color

  var body: some View {
    VStack(alignment: .leading, spacing: 4) {
      Text(title).font(.subheadline.bold())
      ProgressView(value: share).tint(share > 0.9 ? .red : tint)
      Text(text).font(.footnote).foregroundStyle(.secondary)
    }
    .accessibilityElement(children: .combine)
  }

  private var share: Double {
    guard let limit, limit > 0 else { return 0 }
    return min(1, Double(value) / Double(limit))
  }
}
