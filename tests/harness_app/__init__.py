"""The Xcode project of the harness app and the Swift sources that only Apple systems build."""
