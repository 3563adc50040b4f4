"""Relevance from click logs: preference pairs, collaborative ranking, random walks and their hybrid.

Submodules are imported on first use.
"""

from typing import TYPE_CHECKING

from structrank._support.lazy import names_of

if TYPE_CHECKING:  # for type checkers, which do not see lazy names
    from structrank.clicks.baselines import ClickThroughRate as ClickThroughRate
    from structrank.clicks.baselines import MeanPosition as MeanPosition
    from structrank.clicks.collaborative import CollaborativeRanker as CollaborativeRanker
    from structrank.clicks.counts import ClickCounter as ClickCounter
    from structrank.clicks.counts import ClickCounts as ClickCounts
    from structrank.clicks.evaluation import pair_accuracy as pair_accuracy
    from structrank.clicks.frames import read_frame as read_frame
    from structrank.clicks.hybrid import HybridRanker as HybridRanker
    from structrank.clicks.labels import to_labels as to_labels
    from structrank.clicks.log import ClickLog as ClickLog
    from structrank.clicks.log import stream_sessions as stream_sessions
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
    from structrank.clicks.report import LogReport as LogReport
    from structrank.clicks.stream import click_counts as click_counts
    from structrank.clicks.walks import RandomWalkRanker as RandomWalkRanker

_HOME = {
    **dict.fromkeys(("ClickLog", "stream_sessions"), "log"),
    "LogReport": "report",
    "read_frame": "frames",
    **dict.fromkeys(("read_tsv", "read_jsonl", "read_yandex", "stream_tsv", "stream_jsonl", "stream_yandex"), "readers"),
    **dict.fromkeys(("ClickCounts", "ClickCounter"), "counts"),
    "click_counts": "stream",
    **dict.fromkeys(("Preferences", "PairCounter", "preference_pairs"), "preferences"),
    "CollaborativeRanker": "collaborative",
    "RandomWalkRanker": "walks",
    "HybridRanker": "hybrid",
    **dict.fromkeys(("ClickThroughRate", "MeanPosition"), "baselines"),
    "pair_accuracy": "evaluation",
    "to_labels": "labels",
    **dict.fromkeys(("FactorsDisplay", "ThetaDisplay"), "plotting"),
}

__all__ = [*_HOME]
__getattr__, __dir__ = names_of(globals(), _HOME)
