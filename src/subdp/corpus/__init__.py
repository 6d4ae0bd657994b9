"""Text as data: sentences with trees, CoNLL-U, bitext, filters, tokenizers. No torch."""
