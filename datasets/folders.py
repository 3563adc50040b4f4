"""Folder layouts of LETOR 2.0, 3.0, 4.0, MSLR and similar data sets."""

import re
from dataclasses import dataclass
from pathlib import Path

_PARTS = {
    "train": ("train", "trainingset", "training"),
    "validation": ("vali", "valid", "validation", "validationset"),
    "test": ("test", "testset", "testing"),
}
_ENDINGS = {"txt", "dat", "data", "svm", "svmlight", "libsvm", "letor", "ltr", "tsv"}
_COMPRESSED = {"gz", "bz2", "xz"}
_FOLD = re.compile(r"fold[ _-]?(\d+)", re.IGNORECASE)

# LETOR 3.0 has each data set three times; the first is scaled to [0, 1] per query, ready for a learner.
VERSIONS = ("querylevelnorm", "featuremin", "featurenull")
_DEEPEST = 4  # folders between a data set's own and its folds
_MOST_FOLDERS = 1000  # looked at, so that a search from a home folder or / ends soon


def plain(name):
    """Return a name in lower case with letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@dataclass(frozen=True)
class FoldFiles:
    """The files of one fold."""

    train: Path
    validation: Path | None
    test: Path

    def parts(self):
        """Return the existing files: train, validation, test."""
        return [path for path in (self.train, self.validation, self.test) if path is not None]


def find_folds(folder):
    """Find the folds of a data set.

    Parameters
    ----------
    folder : path-like
        Holds ``Fold1``, ``Fold2``, ..., each with a train, a test and perhaps a validation file; or these
        files themselves, as one fold; or a single subfolder, up to four levels deep, with such files. Of LETOR 3.0's
        three versions QueryLevelNorm is used; name the subfolder of another version to use it.

    Returns
    -------
    list of FoldFiles
        By fold number.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder; expected one with Fold1, Fold2, ... or train and test files.")
    homes = preferred(homes_below(folder))
    if len(homes) > 1:
        shown = ", ".join(str(home) for home in homes)
        raise ValueError(f"{folder} holds {len(homes)} data sets; name one of: {shown}.")
    if not homes:
        raise ValueError(
            f"{folder} holds no folds: found {_listed(folder.iterdir())}; expected Fold1, Fold2, ..., each "
            "with train.txt, test.txt and perhaps vali.txt, or these files themselves."
        )
    (home,) = homes
    return [_files_of(fold) for fold in _fold_folders(home) or [home]]


def homes_below(folder):
    """Return the folders at or below `folder` that hold folds, or a train and a test file."""
    homes, level, n_seen = [], [Path(folder)], 0
    for _ in range(_DEEPEST + 1):
        below = []
        for place in level:
            n_seen += 1
            if n_seen > _MOST_FOLDERS:
                raise ValueError(f"{folder} holds over {_MOST_FOLDERS:,} folders; name the folder of one data set.")
            try:
                parts = _part_candidates(place)
                if _fold_folders(place) or (parts["train"] and parts["test"]):
                    homes.append(place)
                else:
                    below += [path for path in place.iterdir() if path.is_dir() and not path.name.startswith(".")]
            except OSError:  # not readable, or gone
                if n_seen == 1:  # the named folder itself
                    raise
        level = sorted(below)
    return sorted(homes)


def preferred(homes):
    """Select one data set of each group that differs only in LETOR 3.0's version: the first of `VERSIONS`."""
    chosen = {}
    for home in homes:
        kind = tuple(part for part in home.parts if plain(part) not in VERSIONS)
        rank = min((VERSIONS.index(plain(part)) for part in home.parts if plain(part) in VERSIONS), default=0)
        if kind not in chosen or rank < chosen[kind][0]:
            chosen[kind] = rank, home
    return [home for _, home in chosen.values()]


def _fold_folders(folder):
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := _FOLD.fullmatch(path.name)) and path.is_dir()]
    return [path for _, path in sorted(found)]


def _part_candidates(folder):
    """Return, for each part, the files named after it: ``train.txt``, ``rank.train``, ``Vali.txt.gz``."""
    found = {part: [] for part in _PARTS}
    for path in sorted(folder.iterdir()):
        words = re.split(r"[^a-z0-9]+", path.name.lower())
        if words[-1] in _COMPRESSED and len(words) > 1:
            del words[-1]
        for part, names in _PARTS.items():
            named = any(word in names for word in words) and words[-1] in {*_ENDINGS, *names}
            if named and path.is_file():
                found[part].append(path)
    return found


def _files_of(folder):
    found = _part_candidates(folder)
    for part, paths in found.items():
        if len(paths) > 1:
            raise ValueError(
                f"{folder} has {len(paths)} files for the {part} part: {_listed(paths)}; expected one. Move "
                "the others away, or load single files with load_letor."
            )
        if not paths and part != "validation":
            raise ValueError(
                f"{folder} has no {part} file: found {_listed(folder.iterdir())}; expected a file such as "
                f"{_PARTS[part][0]}.txt."
            )
    return FoldFiles(**{part: paths[0] if paths else None for part, paths in found.items()})


def _listed(paths):
    names = sorted(path.name for path in paths)
    return ", ".join(names[:8] + ["..."] * (len(names) > 8)) or "nothing"
