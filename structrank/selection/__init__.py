"""Model selection: `choosing_c`, `matching` (train_for a measure), `polish`, `cross_validation`."""

from structrank._support.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
