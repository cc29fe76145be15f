"""Installed apps: reading packages, the store on disk, installation_proxy."""
