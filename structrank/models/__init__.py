"""Trained models: `ranker` (ranking and saving), `files`, `exports` to engines, `imports`, `explanation`."""
