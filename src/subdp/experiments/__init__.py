"""The paper's experiments: grids of cells, corpora, tables and figures."""
