"""The loop of learners that train in rounds: epochs, trees, iterations or passes."""

from __future__ import annotations

import math
import time
import warnings

from structrank._support import checks
from structrank._support.progress import ProgressLine, Reporter
from structrank.training.checkpoint import KeptState
from structrank.training.history import History


class Rounds:
    """Iterate over the rounds of a training run that are still to do; the body ends each with `end`.

    All learners share what happens between rounds: the history, the progress line, the user's callback, early stopping and the
    checkpoint (`structrank.training.checkpoint.KeptState`). Within a ``with`` block, Ctrl-C ends training after the rounds so
    far, if there are any.

    Parameters
    ----------
    learner : estimator
        With parameters `patience`, the number of rounds without a new best value after which training stops, and `verbose`.
    trained : object
        Its ``state()`` is a dict of what the next round depends on, random generators included; ``restore(state)`` returns to
        it.
    facts : dict
        What the model depends on besides the learner's parameters, by name.
    limit : str
        Name of the learner's parameter that limits the number of rounds, as a reason for stopping.
    word : str
        Word for a round, such as "epoch".
    callback : callable, default None
        Called with each entry of the history; a true return value stops training.
    folder : path-like, default None
        For the checkpoint.
    most : int, default None
        Maximum number of rounds, if it is not the value of the parameter.

    Attributes
    ----------
    entries : list
        The history of the finished rounds, also those before a kill.
    seconds : float
        Their total time.
    best_round : int
        The round with the largest value, from 1; 0 if there is none.
    best_value : float
    reason : str or None
        Why training stopped; set it to stop.

    Examples
    --------
    >>> from structrank.learners import RankNet
    >>> from structrank.learners.training import Round
    >>> class Halves:
    ...     value = 1.0
    ...     def state(self):
    ...         return {"value": self.value}
    ...     def restore(self, state):
    ...         self.value = state["value"]
    >>> rounds = Rounds(RankNet(patience=2), Halves(), {}, "max_epochs", "epoch")
    >>> for number in rounds:
    ...     rounds.end(Round(number), watched=min(number, 3))
    >>> len(rounds.entries), rounds.best_round, rounds.reason
    (5, 3, 'patience')
    """

    def __init__(self, learner, trained, facts, limit, word, callback=None, folder=None, most=None):
        self._trained, self._limit, self._word = trained, limit, word
        self._report = Reporter(self._text, ProgressLine() if learner.verbose else None, callback)
        self.most, self.patience = getattr(learner, limit) if most is None else most, learner.patience
        self.entries, self.seconds = [], 0.0
        self.go_on()
        self._kept = KeptState(folder, learner, facts)
        if self._kept.state is not None:
            self._kept.check(self._kept.state, self._state())
            own = dict(self._kept.state)
            trained.restore(own.pop("trained"))
            vars(self).update(own)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is not KeyboardInterrupt or not self.entries:
            return False
        self.reason = "interrupted"
        return True

    def __iter__(self):
        while self.reason is None:
            self._began = time.perf_counter()
            yield len(self.entries) + 1
            if self.reason is None:
                self._kept.update(self._state)
            elif self.reason != "callback":
                self._kept.finish(self._state)

    def lap(self):
        """Return the seconds since the round began."""
        return time.perf_counter() - self._began

    def end(self, entry, watched=math.nan, stop=None):
        """End a round.

        Parameters
        ----------
        entry : dataclass
            For the history.
        watched : float, default nan
            Value of the model; larger is better. nan is never the best, and training does not stop early before the first best.
        stop : str, default None
            The learner's own reason to stop.
        """
        self.entries.append(entry)
        self.seconds += self.lap()
        if watched > self.best_value:
            self.best_round, self.best_value = len(self.entries), float(watched)
        is_late = self.patience is not None and self.best_round and len(self.entries) - self.best_round >= self.patience
        if self._report(entry):
            self.reason = "callback"
        else:
            self.reason = stop or ("patience" if is_late else self._limit_reached())

    def go_on(self):
        """Continue in spite of the patience, or after raising the limit `most`, and await a new best value from here on."""
        self.best_round, self.best_value = len(self.entries), -math.inf
        self.reason = self._limit_reached()

    def store(self, learner):
        """Set the fitted attributes that all learners have, and show, log or warn of the reason for stopping."""
        learner.n_iter_, learner.history_, learner.stop_reason_ = len(self.entries), History(self.entries), self.reason
        if self.entries:
            self._report.finish(self.entries[-1], self.reason)
        if self.reason == "interrupted":
            text = f"Training was interrupted after {self._word} {len(self.entries)}; the model is that of the rounds so far."
            warnings.warn(text, checks.StructRankWarning, stacklevel=5)

    def _limit_reached(self):
        return self._limit if len(self.entries) >= self.most else None

    def _state(self):
        """Return what the next round depends on: the public attributes, and the state of what is trained."""
        own = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return {**own, "trained": self._trained.state()}

    def _text(self, entry):
        texts = [f"{self._word} {len(self.entries)}"]
        for name, value in list(vars(entry).items())[1:]:
            if name != "seconds" and not math.isnan(value):
                shown = f"{value:.4f}" if isinstance(value, float) else value
                texts.append(f"{name.replace('_', ' ')} {shown}")
        return "  ".join([*texts, f"{self.seconds:.1f} s"])
