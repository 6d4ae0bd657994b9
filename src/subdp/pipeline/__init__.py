"""`run`, `quickstart` and `annotate`: stages, plan, resuming."""
