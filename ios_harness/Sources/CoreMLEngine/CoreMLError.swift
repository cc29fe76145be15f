// SPDX-License-Identifier: Apache-2.0

import Foundation
import StreamingLM

/// Everything that goes wrong between the pipeline and Core ML, as a closed set.
///
/// Core ML reports nearly all of it as `com.apple.CoreML`, code 0; what is left to tell them apart is the text. The texts
/// are those of public reports (docs/apple-api.md, Errors).
public enum CoreMLError: Error, Equatable, CustomStringConvertible {
  /// The package or one of its files is not there, or is not what it should be.
  case files(String)
  /// The package could not be compiled on the phone.
  case compile(String)
  /// The model could not be loaded.
  case load(String)
  /// The model's features are not those of a decoder of the kit.
  case interface(feature: String, expected: String)
  /// The Neural Engine refused the graph.
  case neuralEngine(String)
  /// No execution plan could be built (error -14).
  case executionPlan(String)
  /// The process has no IOSurface left. Only loading the model again helps.
  case surfaces(String)
  /// The GPU refuses work from the background.
  case background(String)
  /// No memory for an array.
  case memory(String)
  /// Any other failed prediction.
  case prediction(String)

  /// A word for records.
  public var code: String {
    switch self {
    case .files: "files"
    case .compile: "compile"
    case .load: "load"
    case .interface: "interface"
    case .neuralEngine: "neural_engine"
    case .executionPlan: "execution_plan"
    case .surfaces: "surfaces"
    case .background: "background"
    case .memory: "memory"
    case .prediction: "prediction"
    }
  }

  /// One line for a person.
  public var description: String {
    switch self {
    case .interface(let feature, let expected): "feature \(feature): expected \(expected)"
    case .files(let text), .compile(let text), .load(let text), .neuralEngine(let text),
      .executionPlan(let text), .surfaces(let text), .background(let text), .memory(let text),
      .prediction(let text):
      "\(code): \(text)"
    }
  }

  /// The same for the pipeline.
  public var engineError: EngineError {
    if case .surfaces = self { return .surfaces }
    return .failed(description)
  }

  /// Words of an error's text, and what it then is. The first that is found counts.
  private static let signs: [(words: [String], make: @Sendable (String) -> CoreMLError)] = [
    (["IOSurface", "E5 buffer object"], { .surfaces($0) }),
    (["BackgroundExecutionNotPermitted"], { .background($0) }),
    (["ANECCompile", "MILCompilerForANE", "ANEF", "status=0x1d"], { .neuralEngine($0) }),
    (["execution plan", "error code: -14"], { .executionPlan($0) }),
  ]

  /// What an error of Core ML is.
  ///
  /// - Parameters:
  ///   - error: As it was thrown.
  ///   - otherwise: What it is when its text says nothing.
  /// - Returns: A case of the closed set; an error that is one already comes back unchanged.
  static func of(
    _ error: any Error, otherwise: (String) -> CoreMLError
  ) -> CoreMLError {
    if let known = error as? CoreMLError { return known }
    let text = text(of: error as NSError)
    let sign = signs.first { sign in sign.words.contains { text.contains($0) } }
    return sign?.make(text) ?? otherwise(text)
  }

  /// The text of an error and of those under it; the telling one is often the innermost.
  private static func text(of error: NSError) -> String {
    var texts = ["\(error.domain) \(error.code)", error.localizedDescription]
    var inner = error.userInfo[NSUnderlyingErrorKey] as? NSError
    while let current = inner, texts.count < 8 {
      texts.append(current.localizedDescription)
      inner = current.userInfo[NSUnderlyingErrorKey] as? NSError
    }
    return texts.joined(separator: ": ").replacingOccurrences(of: "\n", with: " ")
  }
}
