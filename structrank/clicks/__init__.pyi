"""The public names: for type checkers, editors and `_support/lazy.py`, which loads them when they are first used."""

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
