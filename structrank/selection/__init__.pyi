"""The public names: for type checkers, editors and `_support/lazy.py`, which loads them when they are first used."""

from structrank.selection.choosing_c import ScoredPath as ScoredPath
from structrank.selection.choosing_c import StructRankSVMCV as StructRankSVMCV
from structrank.selection.choosing_c import choose_C as choose_C
from structrank.selection.cross_validation import CrossValidation as CrossValidation
from structrank.selection.cross_validation import cross_validate as cross_validate
from structrank.selection.matching import MeasureMatched as MeasureMatched
from structrank.selection.matching import Selection as Selection
from structrank.selection.matching import Trial as Trial
from structrank.selection.matching import train_for as train_for
from structrank.selection.polish import Polish as Polish
