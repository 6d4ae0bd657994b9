"""Translating text into a bitext: with Apertium, transformers models, CRISS, or any command."""
