"""The stand-in app: what virtual phones run where no Swift toolchain exists.

It speaks docs/protocol.md and keeps the pipeline contract with a witness engine of its own, so that
it is also an oracle for the Swift app. It imports the standard library and `orchestrator.domain`
alone: its own footprint counts as the phone's, times the memory scale.
"""
