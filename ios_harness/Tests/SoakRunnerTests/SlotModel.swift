// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import StreamingLM

/// A cache as hardware has it: an array of slots, one per row, and a flag for whether it exists. It follows the
/// operations of a trace and writes down each that such a cache could not have carried out, or that breaks a rule which
/// can be seen from the slots alone.
struct SlotModel {
  private(set) var problems: [String] = []

  private let budget: Int
  private let pin: Int
  private let chunk: Int
  private var slots: [Token?] = []
  private var filled = 0
  private var isMade = false
  private var states = 0
  /// What a trim said that it keeps, as long as it is not fed again.
  private var owed: [Token] = []
  private var mustDrop = false

  init(budget: Int, pin: Int, chunk: Int) {
    self.budget = budget
    self.pin = pin
    self.chunk = chunk
  }

  /// Follows one operation.
  ///
  /// - Throws: `JSONError` when it is none.
  mutating func follow(_ operation: JSONValue) throws {
    let fields = try JSONFields(operation)
    let name = try fields.string("op")
    if mustDrop, name != "drop" { problems.append("\(name) between a cut and its drop") }
    switch name {
    case "make": make()
    case "drop": drop()
    case "predict":
      try predict(try fields.int32s("ids"), n: try fields.integer("n"), fields.string("purpose"))
    case "sample": require(try fields.integer("n") == filled, "the sample's n")
    case "trim": try trim(before: fields.integer("before"), kept: fields.int32s("kept"))
    case "evict":
      require(try fields.integer("before") == filled && filled > 0, "the rows of an eviction")
      mustDrop = true
      owed = []
    default: break
    }
  }

  private mutating func require(_ isRight: Bool, _ what: String) {
    if !isRight { problems.append("wrong: \(what)") }
  }

  private mutating func make() {
    require(!isMade, "a state is made while another lives")
    states += 1
    isMade = true
    slots = [Token?](repeating: nil, count: budget)
    filled = 0
  }

  private mutating func drop() {
    require(isMade, "a state is dropped that does not live")
    isMade = false
    mustDrop = false
    slots = []
    filled = 0
  }

  private mutating func predict(_ ids: [Token], n: Int, _ purpose: String) throws {
    require(isMade, "a prediction without a state")
    require((1...max(1, chunk)).contains(ids.count), "the width of a chunk")
    require(filled + ids.count <= slots.count, "a prediction beyond the budget")
    for id in ids where filled < slots.count {
      slots[filled] = id
      filled += 1
    }
    require(n == filled, "the rows after a prediction")
    if purpose == "trim" {
      require(owed.starts(with: ids), "what is fed after a trim")
      owed.removeFirst(min(ids.count, owed.count))
    } else {
      require(owed.isEmpty, "a trim whose ids were not fed again")
    }
  }

  private mutating func trim(before: Int, kept: [Token]) {
    let rows = slots.prefix(filled).compactMap(\.self)
    require(before == filled, "the rows before a trim")
    require(kept.count <= budget / 2 || kept == rows, "more than half a budget kept")
    let pinned = min(pin, kept.count)
    require(kept.prefix(pinned) == rows.prefix(pinned), "the pin")
    require(kept.dropFirst(pinned) == rows.suffix(kept.count - pinned), "the tail")
    owed = kept
    mustDrop = true
  }
}
