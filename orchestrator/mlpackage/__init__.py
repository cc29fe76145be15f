"""Stateful Core ML packages: reads, lints and budgets them; builds, verifies and compresses them.

The reader needs nothing but the standard library. What makes models needs the extra `[models]`.
"""
