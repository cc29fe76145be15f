"""CoreDevice: services of the tunnel that speak RemoteXPC in features."""
