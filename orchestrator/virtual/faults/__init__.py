"""Everything that goes wrong with phones, on order: a typed vocabulary and what each does."""
