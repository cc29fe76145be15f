"""The only code that imports pymobiledevice3."""
