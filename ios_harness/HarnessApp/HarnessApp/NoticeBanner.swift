// SPDX-License-Identifier: Apache-2.0

import SoakRunner
import SwiftUI

/// The notice of a trim or an eviction. Its record is written when it appears, not when it was asked for.
struct NoticeBanner: View {
  let notice: SoakNotice
  let appeared: () -> Void

  var body: some View {
    Label(notice.text, systemImage: "scissors")
      .font(.callout)
      .padding(12)
      .frame(maxWidth: .infinity)
      .background(.yellow, in: RoundedRectangle(cornerRadius: 12))
      .foregroundStyle(.black)
      .padding()
      .onAppear(perform: appeared)
      .accessibilityAddTraits(.isStaticText)
  }
}
