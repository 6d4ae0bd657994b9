"""A tree as text, SVG or HTML page. Standard library only."""
