# SPDX-License-Identifier: GPL-3.0-or-later
"""Soak lab for on-device LLMs on iPhones."""

__version__ = "0.1.0"
