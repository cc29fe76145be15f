"""`fleet.yaml` to a frozen `FleetConfig`, or an error that names file, line, column and rule."""
