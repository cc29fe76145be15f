"""lockdownd: values, pairing, sessions and starting of services."""
