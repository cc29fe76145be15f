"""Commands, composition root, printing, exit codes."""
