"""The command line: one file for each group of verbs, no logic of its own."""
