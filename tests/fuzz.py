"""Fuzz the readers of LETOR files, tables, compressed files and model files: ``python tests/fuzz.py 100000``.

Each input depends only on its number, so ``python tests/fuzz.py 1 4711`` repeats number 4711. A LETOR file must be read as the
slow reference of test_letor.py reads it, or be rejected by both; a table as that of test_tables.py reads it.
A damaged compressed file must be rejected or give the undamaged rows. A model file must be rejected with a ValueError
or yield a model; if its checksum was not adjusted, only the saved model. Inputs are read in a child process: its death, and any
input that takes ten seconds, is reported as a failure. The numbers of accepted and rejected inputs of each kind are printed at
the end.
"""

import bz2
import collections
import faulthandler
import gzip
import hashlib
import json
import lzma
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from test_letor import COMPRESSED_OR_ARCHIVE, PIECES, SMALL, agrees_with_reference
from test_tables import agrees_with_slow_table, damaged

from structrank import StructRankSVM, clicks, datasets, learners, load_model
from structrank.learners import trees

SECONDS = 10
TABLE = b"".join(b"%d\tA%d\t0.5\t%d\t1\n" % (n // 5, n, n) for n in range(14))
VALUES = [
    *(None, True, 0, 1, -1, 2**31, 2**70, 0.5, 1e308, "", "auc", "x", [], {}, [[]], [0, -1], {"array": 0}, {"array": -1}),
    *({"array": 1}, {"names": ["a"]}, {"float": "nan"}, {"float": "1"}, {"tuple": [1]}, {"dict": {"a": 1}}, {"MRR": {"k": 3}}),
    *({"History": []}, {"csr": {"dict": {}}}, {"objects": [1]}, {"Ids": {"values": {"array": 0}}}, {"Popen": {"args": "true"}}),
    *("<f8", "<i8", "|O", "StructRankSVM", "RankNet", "RandomWalkRanker", "Certificate"),
]


def fuzz_letor(rng, path):
    """Read random bytes or a mutated LETOR file."""
    kind = rng.random()
    if kind < 0.1:
        content = rng.randbytes(rng.randint(0, 300))
    elif kind < 0.4:
        content = b"".join(rng.choices(PIECES, k=rng.randint(0, 30)))
    else:
        content = damaged(rng.choice([SMALL, SMALL * 3, TABLE]), rng, PIECES)
    if content.startswith(COMPRESSED_OR_ARCHIVE):
        return "skipped"
    agrees_with_reference(content, path)
    try:
        datasets.load_letor(path, sparse=True)
    except ValueError:
        return "rejected"
    return "accepted"


def fuzz_table(rng, path):
    """Read a damaged CSV or TSV file."""
    return "accepted" if agrees_with_slow_table(rng, path.parent) else "rejected"


class CompressedFiles:
    """Files of one to four compressed streams, and the rows that they hold."""

    def __init__(self, folder):
        self._rows = []
        for n in range(1, 5):
            path = folder / f"rows-{n}"
            path.write_bytes(TABLE * n)
            self._rows.append(datasets.load_letor(path))

    def fuzz(self, rng, path):
        """Read a damaged file."""
        compress = rng.choice([gzip.compress, bz2.compress, lzma.compress])
        n = rng.randint(1, 4)
        content = bytearray(b"".join(compress(TABLE) for _ in range(n)))
        cut = False
        for _ in range(rng.choice([1, 1, 1, 5])):
            place = rng.choice([rng.randrange(len(content)), rng.randrange(n) * (len(content) // n) + rng.randrange(12)])
            place %= len(content)
            match rng.randrange(5):
                case 0:
                    cut = True
                    del content[place : place + rng.choice([1, 4, len(content)])]
                case 1:
                    content[place:place] = rng.choice([b"\0", bytes(4), rng.randbytes(3), content[:20]])
                case _:
                    content[place] ^= 1 << rng.randrange(8)
            if not content:
                return "skipped"
        path.write_bytes(content)
        try:
            found = datasets.load_letor(path)
        except ValueError as error:
            if str(path) not in str(error):
                raise
            return "rejected"
        # A file may lose whole streams at its end, which no format records; damage must not lose anything else.
        expected = self._rows[len(found) // len(self._rows[0]) - 1]
        assert cut or len(found) >= len(self._rows[n - 1]), "rows were lost"
        assert found.X.tobytes() == expected.X.tobytes(), "damaged rows were read"
        assert found.docid.tolist() == expected.docid.tolist(), "damaged rows were read"
        return "accepted"


class ModelFiles:
    """Files of models of several kinds, with their predictions."""

    def __init__(self, folder):
        part = datasets.make_ranking(n_queries=10, n_docs=5, n_features=3, random_state=0).train
        sessions = [("q", ["a", "b"], [1]), ("r", ["b", "c"], [1]), ("q", ["c", "a"], [])] * 3
        log = clicks.ClickLog.from_sessions(sessions)
        on_features, on_clicks = (part.X,), (["q", "r", "q"], ["a", "c", "b"])
        models = [
            (StructRankSVM("auc").fit(part.X, part.y, qid=part.qid), on_features),
            (learners.RankNet(hidden_units=2, max_epochs=1).fit(part.X, part.y, qid=part.qid), on_features),
            (clicks.RandomWalkRanker(steps=3).fit(log), on_clicks),
            (clicks.ClickThroughRate().fit(log), on_clicks),
            (clicks.CollaborativeRanker(factors=2, max_iter=1).fit(clicks.preference_pairs(log)), on_clicks),
            (clicks.HybridRanker(clicks.CollaborativeRanker(factors=2, max_iter=1), theta=0.5).fit(log), on_clicks),
            (learners.SPSARanker(max_evaluations=5).fit(part.X, part.y, qid=part.qid), on_features),
        ]
        boosted = {"n_estimators": 2, "min_child_samples": 2}
        for learner in (learners.LambdaMART, learners.McRank, learners.StructRankTrees, trees.LightGBMRanker):
            model = learner(**boosted)
            models.append((model.fit(part.X, part.y, qid=part.qid), on_features))
        models.append((trees.XGBoostRanker(n_estimators=2, max_depth=3).fit(part.X, part.y, qid=part.qid), on_features))
        self.entries = []
        for number, (model, to_score) in enumerate(models):
            path = folder / f"model-{number}"
            model.save(path)
            self.entries.append((path.read_bytes(), to_score, model.predict(*to_score).tobytes()))

    def fuzz(self, rng, path):
        """Load a mutated or forged model file."""
        content, to_score, expected = rng.choice(self.entries)
        forged = rng.random() < 0.7
        path.write_bytes(_forged(content, rng) if forged else damaged(content, rng, [b"structrank-model 1 ", b"\n", b"{}"]))
        try:
            model = load_model(path)
        except ValueError as error:
            if str(path) not in str(error):
                raise
            return "rejected"
        try:
            scores = model.predict(*to_score)
        except Exception:
            # A forged file with a valid checksum may hold nonsense that fails on use; any other altered file must not load.
            assert forged, "an altered file was loaded"
        else:
            assert forged or scores.tobytes() == expected, "an altered file was loaded"
        return "accepted"


def _forged(content, rng):
    """Change the header or the arrays, and recompute the checksum."""
    first_line, rest = content.split(b"\n", 1)
    size = int(first_line.split()[2])
    header, values = json.loads(rest[:size]), bytearray(rest[size:-32])
    for _ in range(rng.randint(1, 3)):
        if values and rng.random() < 0.2:
            values[rng.randrange(len(values))] = rng.randrange(256)
            continue
        if values and rng.random() < 0.1:
            values = _resized(header, values, rng)
            continue
        place, key = rng.choice(list(_places(header)))
        texts = [(place, key) for place, key in _places(header) if isinstance(place[key], str) and len(place[key]) > 100]
        if texts and rng.random() < 0.7:
            place, key = rng.choice(texts)
            place[key] = _altered_trees(place[key], rng)
        elif rng.random() < 0.15:
            del place[key]
        else:
            place[key] = rng.choice([rng.choice(VALUES), rng.choice(list(_places(header)))[0]])
        # The inserted value may contain itself.
        header = json.loads(json.dumps(header, default=str)) if _is_tree(header) else json.loads(rest[:size])
    text = json.dumps(header).encode()
    content = b"structrank-model 1 %d %d\n%s%s" % (len(text), len(values), text, values)
    return content + hashlib.sha256(content).digest()


def _resized(header, values, rng):
    """Return the bytes of the arrays with one array made shorter or longer; its shape is adjusted."""
    try:
        listed = header["arrays"]
        number = rng.randrange(len(listed))
        start = sum(_n_bytes(entry) for entry in listed[:number])
        entry = listed[number]
        stop = start + _n_bytes(entry)
        row = _n_bytes(entry) // entry["shape"][0]
        if rng.random() < 0.5:
            entry["shape"][0] -= 1
            return values[: stop - row] + values[stop:]
        entry["shape"][0] += 1
        return values[:stop] + values[start : start + row] + values[stop:]
    except (TypeError, KeyError, IndexError, ValueError, ZeroDivisionError):  # an array without rows, or forged before
        return values


def _n_bytes(entry):
    return int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize


def _altered_trees(text, rng):
    """Change numbers of a text of trees; the sizes of LightGBM's trees are adjusted, mostly."""
    for _ in range(rng.randint(1, 3)):
        number = rng.choice(list(re.finditer(r"-?\b\d+\b", text)) or [None])
        if number is None:
            return text
        new = rng.choice([0, 1, 2, 3, 5, 9, -1, -2, -3, 99, 10**6, 2**31 - 1, 2**31, 2**63, -(2**31), "nan", "", "1 1"])
        text = f"{text[: number.start()]}{new}{text[number.end() :]}"
    if "tree_sizes=" in text and rng.random() < 0.9:
        trees_of = re.split("(?=^Tree=)", text.split("end of trees")[0], flags=re.MULTILINE)[1:]
        text = re.sub("tree_sizes=.*", "tree_sizes=" + " ".join(str(len(tree)) for tree in trees_of), text)
    return text


def _places(value):
    """Yield every (dict or list, key or number) inside."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, (dict, list)):
            yield from _places(item)


def _is_tree(value):
    try:
        json.dumps(value)
    except (ValueError, RecursionError):
        return False
    return True


def _too_slow(*_):
    raise TimeoutError(f"took {SECONDS} s")


def read(first, stop):
    """Read the inputs with these numbers; print the number of each, then its kind and how it ended."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.signal(signal.SIGALRM, _too_slow)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fuzzed")
        compressed, models = CompressedFiles(Path(folder)), ModelFiles(Path(folder))
        kinds = {"letor": fuzz_letor, "table": fuzz_table, "compressed": compressed.fuzz, "model": models.fuzz}
        for number in range(first, stop):
            kind = list(kinds)[number % len(kinds)]
            print(number, kind, end=" ", flush=True)
            signal.alarm(SECONDS)
            faulthandler.dump_traceback_later(2 * SECONDS, exit=True)  # compiled code does not react to the alarm
            try:
                print(kinds[kind](random.Random(number), path), flush=True)
            except (Exception, SystemExit):
                print("failed", flush=True)
                print(f"input {number}:", traceback.format_exc(), sep="\n", file=sys.stderr)
            finally:
                signal.alarm(0)
                faulthandler.cancel_dump_traceback_later()


def main(count, first=0):
    """Try `count` inputs from number `first` on; return the number of failures."""
    counts, stop, started = collections.defaultdict(collections.Counter), first + count, time.perf_counter()
    while first < stop:
        command = [sys.executable, __file__, "read", str(first), str(stop)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}) as child:
            for line in child.stdout:
                number, kind, outcome, *_ = [*line.split(), "died"]
                counts[kind][outcome] += 1
                first = int(number) + 1
        if child.returncode:
            print(f"the child process ended with {child.returncode}, at input {first - 1}", file=sys.stderr)
            if not counts:
                return 1
    for kind, outcomes in counts.items():
        print(f"{kind}: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items())))
    failures = sum(outcomes["failed"] + outcomes["died"] for outcomes in counts.values())
    print(f"{count} inputs, {failures} failures, {time.perf_counter() - started:.0f} s")
    return failures


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        read(*map(int, sys.argv[2:]))
    else:
        sys.exit(main(*map(int, sys.argv[1:] or ["100000"])) > 0)
