"""Data that others publish, fetched and checked. No torch."""
