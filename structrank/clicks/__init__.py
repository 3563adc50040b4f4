"""From click logs to relevance: preferences, collaborative ranking, random walks, the hybrid.

Names load when first used.
"""

from typing import TYPE_CHECKING

from structrank._lazy import names_of

if TYPE_CHECKING:  # what the lazy names are
    from structrank.clicks.baselines import ClickThroughRate as ClickThroughRate
    from structrank.clicks.baselines import MeanPosition as MeanPosition
    from structrank.clicks.collaborative import CollaborativeRanker as CollaborativeRanker
    from structrank.clicks.counts import ClickCounter as ClickCounter
    from structrank.clicks.counts import ClickCounts as ClickCounts
    from structrank.clicks.counts import click_counts as click_counts
    from structrank.clicks.evaluation import pair_accuracy as pair_accuracy
    from structrank.clicks.frames import read_frame as read_frame
    from structrank.clicks.hybrid import HybridRanker as HybridRanker
    from structrank.clicks.labels import to_labels as to_labels
    from structrank.clicks.log import ClickLog as ClickLog
    from structrank.clicks.log import LogReport as LogReport
    from structrank.clicks.plotting import FactorsDisplay as FactorsDisplay
    from structrank.clicks.plotting import ThetaDisplay as ThetaDisplay
    from structrank.clicks.preferences import PairCounter as PairCounter
    from structrank.clicks.preferences import Preferences as Preferences
    from structrank.clicks.preferences import preference_pairs as preference_pairs
    from structrank.clicks.readers import read_jsonl as read_jsonl
    from structrank.clicks.readers import read_tsv as read_tsv
    from structrank.clicks.readers import read_yandex as read_yandex
    from structrank.clicks.readers import stream_jsonl as stream_jsonl
    from structrank.clicks.readers import stream_tsv as stream_tsv
    from structrank.clicks.readers import stream_yandex as stream_yandex
    from structrank.clicks.sessions import stream_sessions as stream_sessions
    from structrank.clicks.walks import RandomWalkRanker as RandomWalkRanker

_HOME = {
    "ClickLog": "log",
    "LogReport": "log",
    "read_tsv": "readers",
    "read_jsonl": "readers",
    "read_frame": "frames",
    "read_yandex": "readers",
    "stream_sessions": "sessions",
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
