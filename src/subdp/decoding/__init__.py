"""From arc scores to trees: the maximum spanning arborescence with a single root."""
