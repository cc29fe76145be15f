"""Values of the field, no I/O: phones, memory classes, outcomes, causes, errors, deadlines."""
