"""The time that compiling takes: said once, and not counted in estimates of time left."""

import gc
import logging
import time
import weakref

from numba.core import event

_SILENT_SECONDS = 1.0
MESSAGE = "compiling functions, on first use only (structrank warmup does it ahead)"

_logger = logging.getLogger("structrank")
_lines: weakref.WeakSet = weakref.WeakSet()


class _Clock(event.Listener):
    """Adds up the seconds in which functions of the package are compiled. numba compiles in one thread at a time.

    Meanwhile the garbage collector pauses: it would search numba's many new objects again and again, for a tenth of the time.
    Afterwards they count as old objects, which are searched rarely.
    """

    def __init__(self):
        self.total, self._started, self._depth, self._said, self._collects = 0.0, 0.0, 0, False, False

    def on_start(self, event):
        """Begin to compile a function, perhaps for another one that is being compiled."""
        if self._depth or event.data["dispatcher"].py_func.__module__.startswith("structrank."):
            if self._depth == 0:
                self._started, self._collects = time.perf_counter(), gc.isenabled()
                gc.disable()
            self._depth += 1
            self._announce()

    def on_end(self, event):
        """End to compile a function."""
        if self._depth:
            self._depth -= 1
            if self._depth == 0:
                self.total += time.perf_counter() - self._started
                if self._collects:
                    if gc.get_freeze_count() == 0:
                        gc.freeze()
                        gc.unfreeze()  # moves all objects to the oldest generation
                    gc.enable()
            self._announce()

    def seconds(self):
        return self.total + (time.perf_counter() - self._started if self._depth else 0.0)

    def _announce(self):
        if not self._said and self.seconds() > _SILENT_SECONDS:
            self._said = True
            lines = tuple(_lines)
            _logger.info(MESSAGE, extra={"shown": bool(lines)})
            for line in lines:
                line.announce(MESSAGE)


_clock = _Clock()
event.register("numba:compile", _clock)


def seconds():
    """Return the seconds that this process has spent compiling functions of the package."""
    return _clock.seconds()


def show_on(line):
    """Announce on a progress line that functions are compiled, by ``line.announce(text)``, as long as the line exists."""
    _lines.add(line)
