"""Fuzz the readers of LETOR files and of model files: ``python tests/fuzz.py 100000``.

Each input depends only on its number, so ``python tests/fuzz.py 1 4711`` repeats number 4711. A LETOR file must be read as the
slow reference of test_letor.py reads it, or be rejected by both. A model file must be rejected with a ValueError or yield a
model; if its checksum was not adjusted, only the saved model. Anything else, and any input that takes ten seconds, is reported
as a failure.
"""

import faulthandler
import hashlib
import json
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from test_letor import COMPRESSED_OR_ARCHIVE, PIECES, SMALL, agrees_with_reference

from structrank import StructRankSVM, StructRankWarning, clicks, datasets, lambdas, load_model

SECONDS = 10
TABLE = b"".join(b"%d\tA%d\t0.5\t%d\t1\n" % (n // 5, n, n) for n in range(14))
VALUES = [
    *(None, True, 0, 1, -1, 2**31, 2**70, 0.5, 1e308, "", "auc", "x", [], {}, [[]], [0, -1], {"array": 0}, {"array": -1}),
    *({"array": 1}, {"names": ["a"]}, {"float": "nan"}, {"float": "1"}, {"tuple": [1]}, {"dict": {"a": 1}}, {"MRR": {"k": 3}}),
    *({"History": []}, {"csr": {"dict": {}}}, {"objects": [1]}, {"Ids": {"values": {"array": 0}}}, {"Popen": {"args": "true"}}),
    *("<f8", "<i8", "|O", "StructRankSVM", "RankNet", "RandomWalkRanker", "Certificate"),
]


def mutated(content, rng, pieces):
    """Delete, insert, duplicate and replace bytes, one to four times."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(content))
        stop = rng.choice([start, min(start + rng.randint(0, 30), len(content)), len(content)])
        piece = rng.choice([rng.choice(pieces), rng.randbytes(rng.randint(0, 3)), content[start:stop] * 2, b""])
        content = content[:start] + piece + content[stop:]
    return content


def fuzz_letor(rng, path):
    """Read random bytes or a mutated LETOR file."""
    kind = rng.random()
    if kind < 0.1:
        content = rng.randbytes(rng.randint(0, 300))
    elif kind < 0.4:
        content = b"".join(rng.choices(PIECES, k=rng.randint(0, 30)))
    else:
        content = mutated(rng.choice([SMALL, SMALL * 3, TABLE]), rng, PIECES)
    if not content.startswith(COMPRESSED_OR_ARCHIVE):
        agrees_with_reference(content, path)


class ModelFiles:
    """Files of models of several kinds, with their predictions."""

    def __init__(self, folder):
        part = datasets.make_ranking(n_queries=10, n_docs=5, n_features=3, random_state=0).train
        log = clicks.ClickLog.from_sessions([("q", ["a", "b"], [0]), ("r", ["b", "c"], [1]), ("q", ["c", "a"], [])])
        on_features, on_clicks = (part.X,), (["q", "r", "q"], ["a", "c", "b"])
        models = [
            (StructRankSVM("auc").fit(part.X, part.y, qid=part.qid), on_features),
            (lambdas.RankNet(hidden_units=2, max_epochs=1).fit(part.X, part.y, qid=part.qid), on_features),
            (clicks.RandomWalkRanker(steps=3).fit(log), on_clicks),
            (clicks.ClickThroughRate().fit(log), on_clicks),
        ]
        self.entries = []
        for number, (model, to_score) in enumerate(models):
            path = folder / f"model-{number}"
            model.save(path)
            self.entries.append((path.read_bytes(), to_score, model.predict(*to_score).tobytes()))

    def fuzz(self, rng, path):
        """Load a mutated or forged model file."""
        content, to_score, expected = rng.choice(self.entries)
        forged = rng.random() < 0.7
        path.write_bytes(_forged(content, rng) if forged else mutated(content, rng, [b"structrank-model 1 ", b"\n", b"{}"]))
        try:
            model = load_model(path)
        except ValueError as error:
            if str(path) not in str(error):
                raise
            return
        try:
            scores = model.predict(*to_score)
        except Exception:
            # A forged file with a valid checksum may hold nonsense that fails on use; any other altered file must not load.
            assert forged, "an altered file was loaded"
        else:
            assert forged or scores.tobytes() == expected, "an altered file was loaded"


def _forged(content, rng):
    """Change the header or the arrays, and recompute the checksum."""
    first_line, rest = content.split(b"\n", 1)
    size = int(first_line.split()[2])
    header, values = json.loads(rest[:size]), bytearray(rest[size:-32])
    for _ in range(rng.randint(1, 3)):
        if values and rng.random() < 0.2:
            values[rng.randrange(len(values))] = rng.randrange(256)
            continue
        place, key = rng.choice(list(_places(header)))
        if rng.random() < 0.15:
            del place[key]
        else:
            place[key] = rng.choice([rng.choice(VALUES), rng.choice(list(_places(header)))[0]])
        # The inserted value may contain itself.
        header = json.loads(json.dumps(header, default=str)) if _is_tree(header) else json.loads(rest[:size])
    text = json.dumps(header).encode()
    content = b"structrank-model 1 %d %d\n%s%s" % (len(text), len(values), text, values)
    return content + hashlib.sha256(content).digest()


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


def main(count, first=0):
    """Try `count` inputs from number `first` on; return the number of failures."""
    faulthandler.enable()
    warnings.simplefilter("ignore", StructRankWarning)
    warnings.simplefilter("ignore", RuntimeWarning)
    np.seterr(all="ignore")
    signal.signal(signal.SIGALRM, _too_slow)
    failures, started = 0, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fuzzed")
        models = ModelFiles(Path(folder))
        for number in range(first, first + count):
            rng = random.Random(number)
            signal.alarm(SECONDS)
            try:
                fuzz_letor(rng, path) if number % 2 else models.fuzz(rng, path)
            except (Exception, SystemExit):
                failures += 1
                print(f"input {number}:", traceback.format_exc(), sep="\n", file=sys.stderr)
            finally:
                signal.alarm(0)
    print(f"{count} inputs, {failures} failures, {time.perf_counter() - started:.0f} s")
    return failures


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["100000"])) > 0)
