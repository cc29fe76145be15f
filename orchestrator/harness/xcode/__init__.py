"""Builds and signs the app for iPhones on a Mac. Written from documentation; not run on a Mac."""
