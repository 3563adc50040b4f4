"""What a trained model can do: `ranker` (rank and save), `files`, `exports` to engines, `imports`, `explanation`."""
