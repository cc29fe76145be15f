"""The phone's log, and the two services that stream it."""
