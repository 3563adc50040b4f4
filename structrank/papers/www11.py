"""WWW 2011: Svore, Volkovs, Burges, "Learning to rank with multiple objective functions"."""

__all__: list[str] = []
