"""From click logs to relevance: preferences, collaborative ranking, random walks, the hybrid.

Names load when first used.
"""

from structrank._lazy import names_of

_HOME = {
    "ClickLog": "log",
    "LogReport": "log",
    "read_tsv": "readers",
    "read_jsonl": "readers",
    "read_frame": "readers",
    "read_yandex": "readers",
    "stream_sessions": "readers",
    "stream_tsv": "readers",
    "stream_jsonl": "readers",
    "stream_yandex": "readers",
    "ClickCounts": "counts",
    "ClickCounter": "counts",
    "click_counts": "counts",
    "Preferences": "preferences",
    "PairCounter": "preferences",
    "preference_pairs": "preferences",
    "CollaborativeRanker": "collaborative",
    "RandomWalkRanker": "walks",
    "HybridRanker": "hybrid",
    "ClickThroughRate": "baselines",
    "MeanPosition": "baselines",
    "pair_accuracy": "evaluation",
    "to_labels": "labels",
    "FactorsDisplay": "plotting",
    "ThetaDisplay": "plotting",
}

__all__ = [*_HOME]
__getattr__, __dir__ = names_of(globals(), _HOME)
