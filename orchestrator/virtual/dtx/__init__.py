"""DTX: the remote procedure calls of the developer services."""
