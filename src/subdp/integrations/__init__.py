"""subdp inside other tools: spaCy."""
