"""CoreDeviceProxy: an IPv6 tunnel inside a lockdown service, and the TCP at the phone's end."""
