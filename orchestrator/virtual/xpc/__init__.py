"""RemoteXPC: XPC objects inside HTTP/2 frames, as the services of the tunnel speak them."""
