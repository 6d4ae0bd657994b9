"""Distributions carried through word alignments: operators, soft trees, silver."""
