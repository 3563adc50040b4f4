"""The public names, for type checkers and editors: at run time they load when first used."""

from structrank import clicks as clicks
from structrank import criteria as criteria
from structrank import datasets as datasets
from structrank import feature_maps as feature_maps
from structrank import lambdas as lambdas
from structrank import metrics as metrics
from structrank import solvers as solvers
from structrank._validation import StructRankWarning as StructRankWarning
from structrank.comparison import compare as compare
from structrank.criteria import register as register
from structrank.model_file import load_model as load_model
from structrank.model_selection import cross_validate as cross_validate
from structrank.selection import train_for as train_for
from structrank.svm import StructRankSVM as StructRankSVM
from structrank.violation import most_violated as most_violated

__version__: str
