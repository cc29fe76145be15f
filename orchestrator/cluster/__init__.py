"""Several hosts as one fleet, on Dask distributed; a single host imports nothing of it."""
