"""Data sets of the user, by name."""

import os
import re
from pathlib import Path
from typing import Any

from structrank.datasets.containers import Fold
from structrank.datasets.folders import VERSIONS, homes_below, plain, preferred
from structrank.datasets.letor import load_letor_folds

_LETOR = "the LETOR project pages of Microsoft Research"
_SOURCES = {
    "ohsumed": ("OHSUMED", f"{_LETOR} (LETOR 2.0 or 3.0)"),
    "td2003": ("TD2003", f"{_LETOR} (LETOR 2.0, or 3.0 in the Gov package)"),
    "td2004": ("TD2004", f"{_LETOR} (LETOR 2.0, or 3.0 in the Gov package)"),
    "hp2003": ("HP2003", f"{_LETOR} (LETOR 3.0, Gov package)"),
    "hp2004": ("HP2004", f"{_LETOR} (LETOR 3.0, Gov package)"),
    "np2003": ("NP2003", f"{_LETOR} (LETOR 3.0, Gov package)"),
    "np2004": ("NP2004", f"{_LETOR} (LETOR 3.0, Gov package)"),
    "mq2007": ("MQ2007", f"{_LETOR} (LETOR 4.0)"),
    "mq2008": ("MQ2008", f"{_LETOR} (LETOR 4.0)"),
    "mslrweb10k": ("MSLR-WEB10K", "Microsoft Research's page on the Microsoft Learning to Rank Datasets"),
    "mslrweb30k": ("MSLR-WEB30K", "Microsoft Research's page on the Microsoft Learning to Rank Datasets"),
    "webisclueweb09": ("webis-clueweb09", "the Webis group's page on its SIGIR 2020 paper on near-duplicates"),
}
_GOV = re.compile(r"(2003|2004)_?(td|hp|np)_?(dataset)?", re.IGNORECASE)  # LETOR 3.0: Gov/.../2003_td_dataset
_NO_NAMES = {*VERSIONS, "data", "letor", "gov"}


class DataSetNotFoundError(FileNotFoundError, ValueError):
    """A data set is not in the folder of the user's data sets."""


def available(data_home: str | os.PathLike[str] | None = None) -> list[str]:
    """List the data sets that `load` finds.

    Parameters
    ----------
    data_home : path-like, optional
        Folder of the data sets; by default the environment variable STRUCTRANK_DATA, or ``~/structrank_data`` if it is not set.

    Returns
    -------
    list of str
        Names of the folders that hold folds, in lower case: "ohsumed", "mslr-web10k", ... A folder of LETOR
        3.0's Gov package, ``2003_td_dataset``, is called as in LETOR 2.0: "td2003".

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as home:
    ...     Path(home, "OHSUMED", "Fold1").mkdir(parents=True)
    ...     available(home)
    ['ohsumed']
    """
    return sorted(_homes(_data_home(data_home)))


def load(name: str, *, data_home: str | os.PathLike[str] | None = None, **options: Any) -> list[Fold]:
    r"""Load the folds of a data set by its name.

    Parameters
    ----------
    name : str
        A name from `available`; case, blanks and dashes are ignored.
    data_home : path-like, optional
        As in `available`.
    **options
        As in `load_letor_folds`.

    Raises
    ------
    DataSetNotFoundError
        A FileNotFoundError and ValueError whose message names the expected place of the files and their source;
        nothing is downloaded.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as home:
    ...     fold = Path(home, "Tiny", "Fold1")
    ...     fold.mkdir(parents=True)
    ...     _ = (fold / "train.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.25\n")
    ...     _ = (fold / "test.txt").write_text("1 qid:2 1:0.75\n0 qid:2 1:0\n")
    ...     folds = load("tiny", data_home=home)
    >>> len(folds), folds[0].test
    (1, Dataset(2 documents, 1 queries, 1 features, labels 0: 1, 1: 1))
    """
    home = _data_home(data_home)
    known = _homes(home)
    folders = [folder for own, found in known.items() if plain(own) == plain(name) for folder in found]
    if len(folders) > 1:
        shown = ", ".join(map(str, folders))
        raise ValueError(f"{name!r} exists {len(folders)} times: {shown}; pass one of these folders to load_letor_folds.")
    if not folders:
        raise DataSetNotFoundError(_where_expected(name, home, known))
    return load_letor_folds(folders[0], **options)


def _data_home(data_home):
    chosen = data_home if data_home is not None else os.environ.get("STRUCTRANK_DATA") or "~/structrank_data"
    return Path(chosen).expanduser()


def _homes(home):
    """Return name -> folders for all data sets below `home`."""
    found = {}
    if home.is_dir():
        for folder in preferred(homes_below(home)):
            found.setdefault(_name_of(folder, home), []).append(folder)
    return found


def _name_of(folder, home):
    for part in reversed(folder.relative_to(home).parts):
        if gov := _GOV.fullmatch(part):
            return f"{gov[2]}{gov[1]}".lower()
        if plain(part) not in _NO_NAMES:
            return part.lower()
    return folder.name.lower()


def _where_expected(name, home, known):
    folder, source = _SOURCES.get(plain(name), (str(name), None))
    place = home / folder
    state = "" if home.is_dir() else " (this folder does not exist)"
    lines = [
        f"the data set {name!r} is not in {home}{state}.",
        f"Expected: {place / 'Fold1' / 'train.txt'}, test.txt and perhaps vali.txt beside it, and so on for "
        f"Fold2, ...; subfolders in between, as {place / 'QueryLevelNorm' / 'Fold1'}, are found too.",
        f"Found there: {', '.join(sorted(known)) or 'no data set'}.",
        "Name another folder with data_home=... or the environment variable STRUCTRANK_DATA.",
        f"Obtain it from {source} and unpack it there; this package downloads nothing."
        if source
        else f"Data sets with a known source: {', '.join(sorted(_SOURCES))}.",
    ]
    return "\n".join(lines)
