"""Services that lockdown starts: files, apps, crash reports, logs, diagnostics."""
