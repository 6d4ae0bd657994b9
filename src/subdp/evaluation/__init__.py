"""Attachment scores, their spread and their significance. No torch."""
