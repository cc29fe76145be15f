"""Virtual iPhones: a protocol-level usbmuxd and the phones behind it."""
