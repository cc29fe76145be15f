"""What a signed app says about itself, read without Apple's tools, and whether phones take it."""
