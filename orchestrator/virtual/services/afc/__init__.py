"""Apple File Conduit: a folder of the phone, served to the host."""
