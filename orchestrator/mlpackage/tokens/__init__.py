"""Prompts and text of real models, on the host: the phone needs no tokenizer."""
