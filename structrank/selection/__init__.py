"""Model selection: `choosing_c`, `matching` (train_for a measure), `polish`, `cross_validation`."""
