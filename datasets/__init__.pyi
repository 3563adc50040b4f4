"""The public names: for type checkers, editors and `_support/lazy.py`, which loads them when they are first used."""

from structrank.datasets.cleaning import PerQueryScaler as PerQueryScaler
from structrank.datasets.cleaning import clean as clean
from structrank.datasets.cleaning import scale_per_query as scale_per_query
from structrank.datasets.click_labels import make_click_labels as make_click_labels
from structrank.datasets.clicks import Clicks as Clicks
from structrank.datasets.clicks import make_clicks as make_clicks
from structrank.datasets.containers import Dataset as Dataset
from structrank.datasets.containers import Fold as Fold
from structrank.datasets.digits import load_digits_retrieval as load_digits_retrieval
from structrank.datasets.letor import load_letor as load_letor
from structrank.datasets.letor import load_letor_folds as load_letor_folds
from structrank.datasets.library import available as available
from structrank.datasets.library import load as load
from structrank.datasets.polynomial import make_polynomial_ranking as make_polynomial_ranking
from structrank.datasets.shards import Shards as Shards
from structrank.datasets.shards import cut_shards as cut_shards
from structrank.datasets.shards import open_shards as open_shards
from structrank.datasets.shards import write_shards as write_shards
from structrank.datasets.synthetic import make_ranking as make_ranking
from structrank.datasets.tables import load_table as load_table
from structrank.datasets.tables import query_folds as query_folds
