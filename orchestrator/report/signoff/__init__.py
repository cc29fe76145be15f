"""Sign-off of a release: a policy's cells against evidence, one signed bundle or a list of gaps."""
