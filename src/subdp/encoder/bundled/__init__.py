"""The encoder that comes with the install: its weights, its network and its tokenizer."""
