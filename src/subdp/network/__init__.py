"""The biaffine network, its predictions, and the model folder."""
