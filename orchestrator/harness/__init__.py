"""Builds and packs the app, speaks the telemetry protocol, holds the Python stand-in app."""
