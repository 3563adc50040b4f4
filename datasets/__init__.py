"""Data sets: embedded ones that need no download, and generators."""
