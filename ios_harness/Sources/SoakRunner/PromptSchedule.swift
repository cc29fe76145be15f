// SPDX-License-Identifier: Apache-2.0

import ReferenceEngine
import StreamingLM

/// The prompts of a soak: a public function of the seed, so that the host knows them without sending them.
package struct PromptSchedule: Sendable {
  let seed: UInt64
  /// Fewest and most ids of a prompt.
  let lengths: ClosedRange<Int>
  let firstID: Token
  let vocabularySize: Int
  /// Begins the first prompt of a conversation, where the model has such an id.
  let bosID: Token?

  /// The ids of one prompt.
  ///
  /// - Parameters:
  ///   - conversation: From 1 in the launch.
  ///   - turn: From 1 in the conversation.
  /// - Returns: Ids, as many as the seed says.
  package func prompt(conversation: Int, turn: Int) -> [Token] {
    let stem = Mixing.mix(seed ^ UInt64(conversation) << 40 ^ UInt64(turn) << 20)
    let length = lengths.lowerBound + Int(stem % UInt64(lengths.count))
    let span = UInt64(vocabularySize - Int(firstID))
    var ids = (0..<length).map { place in
      firstID + Token(Mixing.mix(stem ^ UInt64(place + 1)) % span)
    }
    if turn == 1, let bosID { ids[0] = bosID }
    return ids
  }
}
