"""From click logs to relevance: preferences, collaborative ranking, random walks, the hybrid."""
