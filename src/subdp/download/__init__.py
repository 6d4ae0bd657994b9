"""Downloading and checking published data. No torch."""
