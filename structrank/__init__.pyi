"""The public names: for type checkers, editors and `_support/lazy.py`, which loads them when they are first used."""

from structrank import clicks as clicks
from structrank import criteria as criteria
from structrank import datasets as datasets
from structrank import feature_maps as feature_maps
from structrank import learners as learners
from structrank import metrics as metrics
from structrank import papers as papers
from structrank import penalties as penalties
from structrank import selection as selection
from structrank import solvers as solvers
from structrank._support.checks import StructRankWarning as StructRankWarning
from structrank.comparison.experiment import compare as compare
from structrank.criteria import register as register
from structrank.learners.structured_trees import StructRankTrees as StructRankTrees
from structrank.models.files import load_model as load_model
from structrank.selection.choosing_c import StructRankSVMCV as StructRankSVMCV
from structrank.selection.choosing_c import choose_C as choose_C
from structrank.selection.cross_validation import cross_validate as cross_validate
from structrank.selection.matching import train_for as train_for
from structrank.svm import StructRankSVM as StructRankSVM
from structrank.training.violation import most_violated as most_violated

__version__: str
