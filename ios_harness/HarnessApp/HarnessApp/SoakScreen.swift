// SPDX-License-Identifier: Apache-2.0

import SoakRunner
import SwiftUI

/// One screen: what runs, how full the context is, how fast, how near the memory limit, and the trim notice.
struct SoakScreen: View {
  @ObservedObject var observer: SoakObserver

  var body: some View {
    ZStack(alignment: .top) {
      content
        .padding()
        .frame(maxWidth: .infinity, maxHeight: .infinity, alignment: .topLeading)
      if let notice = observer.snapshot?.notice {
        NoticeBanner(notice: notice) { observer.noticeAppeared(notice) }
          .id(notice.sequence)
      }
    }
    .modifier(Dimming())
  }

  @ViewBuilder private var content: some View {
    switch observer.stage {
    case .unattended:
      Message(
        title: "No host", text: "Start a soak with fleet soak; it launches this app itself.")
    case .failed(let text):
      Message(title: "The soak cannot start", text: text)
    case .serving:
      if let snapshot = observer.snapshot, snapshot.runID != nil {
        SoakDashboard(snapshot: snapshot, tokensPerS: observer.tokensPerS)
      } else {
        Message(title: "Waiting for the host", text: "The app is listening on the loopback.")
      }
    }
  }
}

/// A state in which nothing runs.
private struct Message: View {
  let title: String
  let text: String

  var body: some View {
    VStack(alignment: .leading, spacing: 8) {
      Text(title).font(.title2.bold())
      Text(text).foregroundStyle(.secondary)
    }
  }
}
