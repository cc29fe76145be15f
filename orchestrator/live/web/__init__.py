"""The live view in a browser: read-only, on loopback, without a build step."""
