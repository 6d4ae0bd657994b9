"""Text in one language becomes a bitext: Apertium, transformers models, CRISS, any command."""
