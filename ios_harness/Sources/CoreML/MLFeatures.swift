// SPDX-License-Identifier: Apache-2.0

/// The value of a feature.
public class MLFeatureValue {
  /// The array, if it is one.
  public let multiArrayValue: MLMultiArray?

  /// - Parameter multiArray: The value; not copied.
  public init(multiArray: MLMultiArray) { multiArrayValue = multiArray }
}

/// Features by name.
public protocol MLFeatureProvider {
  /// Names of the features.
  var featureNames: Set<String> { get }
  /// The value of a feature, or nil when there is none.
  func featureValue(for featureName: String) -> MLFeatureValue?
}

/// How a prediction is made.
public class MLPredictionOptions {
  /// Arrays that outputs are written to instead of new ones.
  public var outputBackings: [String: Any] = [:]

  /// Nothing asked for.
  public init() {}
}

/// What a feature is.
public class MLFeatureDescription {
  /// Its name.
  public let name: String
  /// What its array must be, if it is one.
  public let multiArrayConstraint: MLMultiArrayConstraint?
  /// What its buffer is, if it is a state.
  public let stateConstraint: MLStateConstraint?

  init(_ name: String, array: MLMultiArrayConstraint) {
    self.name = name
    multiArrayConstraint = array
    stateConstraint = nil
  }

  init(_ name: String, state: MLStateConstraint) {
    self.name = name
    multiArrayConstraint = nil
    stateConstraint = state
  }
}

/// What the buffer of a state is.
public class MLStateConstraint {
  /// Length of each axis.
  public let bufferShape: [Int]
  /// Type of the elements.
  public let dataType: MLMultiArrayDataType

  init(_ shape: [Int], _ dataType: MLMultiArrayDataType) {
    bufferShape = shape
    self.dataType = dataType
  }
}

/// Inputs, outputs and states of a model.
public class MLModelDescription {
  /// Inputs by name.
  public let inputDescriptionsByName: [String: MLFeatureDescription]
  /// Outputs by name.
  public let outputDescriptionsByName: [String: MLFeatureDescription]
  /// States by name.
  public let stateDescriptionsByName: [String: MLFeatureDescription]

  init(
    inputs: [MLFeatureDescription], outputs: [MLFeatureDescription], states: [MLFeatureDescription]
  ) {
    inputDescriptionsByName = Dictionary(uniqueKeysWithValues: inputs.map { ($0.name, $0) })
    outputDescriptionsByName = Dictionary(uniqueKeysWithValues: outputs.map { ($0.name, $0) })
    stateDescriptionsByName = Dictionary(uniqueKeysWithValues: states.map { ($0.name, $0) })
  }
}
