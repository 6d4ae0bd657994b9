"""Word alignment: links as values, the aligners that make them, and files of links."""
