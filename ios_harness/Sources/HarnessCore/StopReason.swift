// SPDX-License-Identifier: Apache-2.0

/// Why a turn ended. Every turn ends with exactly one.
public enum StopReason: String, Sendable, CaseIterable {
  /// The model sampled one of its end tokens.
  case endToken = "end_token"
  /// The turn reached its largest number of generated tokens.
  case turnLimit = "turn_limit"
  /// The consumer, the host or the end of the soak stopped it.
  case cancelled
  /// A second eviction came with nothing sampled since the first (contract R8).
  case memoryPressure = "memory_pressure"
  /// A prediction failed or gave logits that are not finite (contract R9).
  case fault
  /// The prompt does not fit the budget; nothing changed (contract R4).
  case refused
}

/// Why a launch said goodbye.
public enum FarewellReason: String, Sendable {
  /// The scenario's time or token count was reached.
  case completed
  /// The host asked for it.
  case stopped
  /// The pipeline cannot go on; a `fault` record says why.
  case fault
}
