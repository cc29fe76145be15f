"""The keeper: one small process per phone that owns its developer session, and its client.

It isolates a hung call, and it outlives the orchestrator by a lease, because closing the connection
may kill the app. Nothing here imports pymobiledevice3; the process itself is `device.pmd3.keeper`.
"""
