"""A dependency parser for a language without a treebank, by Substructure Distribution Projection."""

__version__ = "0.1.0"
