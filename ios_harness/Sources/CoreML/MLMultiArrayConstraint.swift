// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What an array must be.
public class MLMultiArrayConstraint {
  /// Length of each axis.
  public let shape: [NSNumber]
  /// Type of the elements.
  public let dataType: MLMultiArrayDataType

  init(_ shape: [Int], _ dataType: MLMultiArrayDataType) {
    self.shape = shape.map { NSNumber(value: $0) }
    self.dataType = dataType
  }

  func allows(_ array: MLMultiArray) -> Bool {
    array.shape == shape && array.dataType == dataType
  }
}
