"""Words to vectors: encoders, batches, and the store of their features."""
