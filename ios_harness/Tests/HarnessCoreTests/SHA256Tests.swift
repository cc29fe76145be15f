// SPDX-License-Identifier: Apache-2.0

import HarnessCore
import Testing

/// Known answers: FIPS 180-4 examples and lengths around a block.
@Suite struct SHA256Tests {
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (
      String(repeating: "a", count: 1000),
      "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"
    ),
  ])
  func knownAnswer(text: String, digest: String) {
    #expect(SHA256.hexadecimal(of: text.utf8) == digest)
  }

  @Test func piecesGiveTheSameHashAsTheWhole() {
    var hash = SHA256()
    hash.update("abcdbcdecdefdefg".utf8)
    hash.update("efghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)
    #expect(
      Hexadecimal.text(of: hash.finalize())
        == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
  }
}
