"""Small programs that stand for apps."""

ECHO = """
import os, sys
print("ready", flush=True)
for line in sys.stdin:
    print("told", line.strip(), flush=True)
print("end of file", flush=True)
sys.exit(18)
"""

LISTEN = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(os.environ["FLEET_SOCKET"])
print("ready", flush=True)
sys.stdin.read()
"""
