// SPDX-License-Identifier: Apache-2.0

/// When the context is trimmed and what stays. `contract` is rule R5; others exist to be caught.
public struct TrimRule: Sendable {
  /// Whether `rows` and `incoming` more tokens call for a trim under a `budget`.
  public let isDue: @Sendable (_ rows: Int, _ incoming: Int, _ budget: Int) -> Bool
  /// The ids that stay: `count` of the context, of which the first `pinned` are the pin.
  public let kept: @Sendable (_ context: [Token], _ pinned: Int, _ count: Int) -> [Token]

  /// - Parameters:
  ///   - isDue: Whether a trim is called for.
  ///   - kept: The ids that stay.
  public init(
    isDue: @escaping @Sendable (_ rows: Int, _ incoming: Int, _ budget: Int) -> Bool,
    kept: @escaping @Sendable (_ context: [Token], _ pinned: Int, _ count: Int) -> [Token]
  ) {
    self.isDue = isDue
    self.kept = kept
  }

  /// Contract R5: when the budget would be passed; the pin and the tail stay.
  public static let contract = TrimRule(
    isDue: { rows, incoming, budget in rows + incoming > budget },
    kept: { context, pinned, count in
      count == context.count
        ? context : Array(context.prefix(pinned) + context.suffix(count - pinned))
    })
}
