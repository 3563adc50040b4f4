"""LETOR data: one file, or a folder of them."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import scipy.sparse

from structrank.datasets._letor_reader import ReadOptions, read_letor_files, side_file
from structrank.datasets.cache import ParseCache, content_key
from structrank.datasets.containers import Dataset, Fold
from structrank.datasets.folders import find_folds


def load_letor(
    path: str | os.PathLike[str],
    *,
    null: str = "error",
    sparse: bool = False,
    dtype: type = np.float64,
    n_features: int | None = None,
    zero_based: bool = False,
    cache: str | os.PathLike[str] | None = None,
    verbose: int | None = None,
) -> Dataset:
    r"""Read a LETOR file, or a folder of them as one data set.

    Parameters
    ----------
    path : path-like
        A file, plain or compressed by gzip, bzip2 or xz (recognised by content), with one document a line, as

        - ``2 qid:10 1:0.5 2:0.25 ... #docid = GX1``, the format of LETOR, MSLR and svmlight;
        - the same without qid, with LightGBM's file ``<path>.query`` of group sizes; queries are 0, 1, ...;
        - ``10<TAB>GX1<TAB>0.5<TAB>0.25<TAB>...<TAB>2``, the tab-separated variant of LETOR 2.0.

        Or a folder as for `load_letor_folds`: the parts of its first fold are concatenated. They are the whole
        data set, as each fold of LETOR partitions all queries.
    null : {"error", "min", "zero", "keep"}
        Treatment of missing values: an error, the smallest value of the feature in the same query (0 if the
        query has none), 0, or nan, for a model that fills them (`structrank.preparation`). Missing values
        are the word NULL, as in LETOR 3.0's Feature-null, and numbers of absolute value 1.79e308 or more, as in
        Istella.
    sparse : bool
        Return X as a sparse CSR matrix.
    dtype : {numpy.float64, numpy.float32}
        Type of X.
    n_features : int, optional
        Number of columns of X; by default the largest feature id.
    zero_based : bool
        Whether feature ids count from 0, not from 1.
    cache : path-like, optional
        Folder for parsed files, created if missing: a file with the same content is then mapped from the folder instead
        of parsed again. By default nothing is written.
    verbose : int, optional
        Progress bar on standard error for files over 50 MB: 1 shows it, 0 does not; by default it shows on a terminal.

    Returns
    -------
    Dataset
        ``X`` of shape (n_docs, n_features), ``y`` (n_docs,) of float64, ``qid`` (n_docs,) of int64 if all ids are
        integers (as Python prints them: not 007), otherwise of str, and ``docid`` (n_docs,) of str: X of a comment
        ``docid = X ...``, otherwise the whole comment, "" for a line without comment; None if no line has one.

    Raises
    ------
    ValueError
        With file, line, what was found and what was expected.

    Notes
    -----
    Values are the nearest doubles, as from ``float()``. Features that a line does not list are 0.
    Features may be in any order, but none twice. Labels are finite numbers of at least 0 and values finite numbers.
    Blank lines and comment lines are skipped; lines may end with return-newline; comments may be UTF-8
    or Latin-1, everything else is ASCII or UTF-8. A last line without newline is accepted, unless ten or more lines before
    it all have the same number of features (or a comment) and it has fewer (or none): the file is then reported
    as truncated. A truncation within the last value cannot be detected.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.txt")
    ...     _ = path.write_text("2 qid:10 1:0.5 2:0.25 #docid = GX1\n0 qid:10 2:1e-3 #docid = GX2\n")
    ...     d = load_letor(path)
    >>> d
    Dataset(2 documents, 1 queries, 2 features, labels 0: 1, 2: 1)
    >>> d.X.tolist(), d.qid.tolist(), d.docid.tolist()
    ([[0.5, 0.25], [0.0, 0.001]], [10, 10], ['GX1', 'GX2'])
    """
    options = ReadOptions(null, sparse, dtype, n_features, zero_based)
    path = Path(path)
    return _read(find_folds(path)[0].parts() if path.is_dir() else [path], options, cache, verbose)


def load_letor_folds(
    folder: str | os.PathLike[str],
    *,
    null: str = "error",
    sparse: bool = False,
    dtype: type = np.float64,
    n_features: int | None = None,
    zero_based: bool = False,
    cache: str | os.PathLike[str] | None = None,
    verbose: int | None = None,
) -> list[Fold]:
    r"""Read the folds of a data set.

    Parameters
    ----------
    folder : path-like
        Holds ``Fold1``, ``Fold2``, ..., each with a file for training, one for testing and perhaps one for
        validation (``train``, ``vali``, ``test``; LETOR 2.0's ``trainingset``, ...; in any case, with any
        ending, compressed or not); or these files themselves, as a single fold; or one subfolder with such files.
        Of LETOR 3.0's three versions QueryLevelNorm is used; name the subfolder of another version to use it.
    null, sparse, dtype, n_features, zero_based, cache, verbose
        As in `load_letor`. With `cache` the parts are mapped from disk, so that large sets need not fit into memory.

    Returns
    -------
    list of Fold
        ``.train``, ``.validation`` (None if missing) and ``.test``; all have the same number of
        features and the same type of query ids.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     fold = Path(folder, "Fold1")
    ...     fold.mkdir()
    ...     _ = (fold / "train.txt").write_text("1 qid:1 1:0.5 2:0.25\n0 qid:1 2:1\n")
    ...     _ = (fold / "test.txt").write_text("1 qid:2 1:0.75\n0 qid:2 1:0\n")
    ...     folds = load_letor_folds(folder)
    >>> folds[0].train.X.tolist(), folds[0].validation, folds[0].test.X.tolist()
    ([[0.5, 0.25], [0.0, 1.0]], None, [[0.75, 0.0], [0.0, 0.0]])
    """
    options = ReadOptions(null, sparse, dtype, n_features, zero_based)
    files = find_folds(folder)
    data = {path: _read([path], options, cache, verbose) for fold in files for path in fold.parts()}
    data = dict(zip(data, conform(data.values()), strict=True))
    return [Fold(data[fold.train], data.get(fold.validation), data[fold.test]) for fold in files]


def _read(paths, options, cache, verbose):
    if cache is None:
        return read_letor_files(paths, options, verbose)
    cache = ParseCache(cache)
    beside = [file for path in paths if (file := side_file(path))]
    key = content_key([*paths, *beside], dataclasses.replace(options, dtype=np.dtype(options.dtype).name))
    data = cache.load(key)
    if data is None:
        data = read_letor_files(paths, options, verbose)
        cache.save(key, data)
        data = cache.load(key) or data
    return data


def conform(parts):
    """Return the parts of a data set with the number of features of the widest part, and query ids of one type."""
    n_features = max(part.X.shape[1] for part in parts)
    some_text = any(part.qid.dtype.kind != "i" for part in parts)
    return [_conform(part, n_features, some_text) for part in parts]


def _conform(data, n_features, text_ids):
    X, qid = data.X, data.qid
    missing = n_features - X.shape[1]
    if missing and scipy.sparse.issparse(X):
        X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    elif missing:
        X = np.pad(X, ((0, 0), (0, missing)))
    if text_ids and qid.dtype.kind == "i":
        qid = qid.astype(str)
    return dataclasses.replace(data, X=X, qid=qid)
