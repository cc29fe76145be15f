"""Diagnostic reports (`.ips`) to typed values, and whose they are."""
