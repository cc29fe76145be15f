"""The run directory: append-only typed records, one writer, a reader that accepts a torn line."""
