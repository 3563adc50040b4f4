"""The train-vs-test criterion table, from `experiment` (compare) to `table`, `rendering`, `report` and `plotting`."""
