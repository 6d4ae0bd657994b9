"""The training loop, what it trains on, the losses, and what becomes of NULL mass."""
