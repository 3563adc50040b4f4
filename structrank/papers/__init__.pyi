"""The public names: for type checkers, editors and `_support/lazy.py`, which loads them when they are first used."""

from structrank.papers import aaai10 as aaai10
from structrank.papers import kdd08 as kdd08
from structrank.papers import msr07 as msr07
from structrank.papers import sigir09 as sigir09
from structrank.papers import www11 as www11
from structrank.papers.exhibit import Exhibit

def exhibits() -> dict[str, dict[str, Exhibit]]: ...
