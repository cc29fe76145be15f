"""Pure: telemetry, evidence and policy to check results, a cause and one outcome per phone."""
