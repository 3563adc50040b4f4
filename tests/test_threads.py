"""Work shared between threads: every piece is done once, results keep their order, and errors are raised."""

import threading

import pytest

from structrank._support.threads import Threads


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_pieces", [0, 1, 2, 50])
def test_every_piece_is_done_once_and_results_keep_the_order(n_threads, n_pieces):
    done = []

    def work(piece):
        done.append(piece)
        return -piece

    with Threads(n_threads) as threads:
        assert threads.map(work, list(range(n_pieces))) == [-piece for piece in range(n_pieces)]
    assert sorted(done) == list(range(n_pieces))


def test_the_caller_and_a_helper_work_side_by_side():
    meeting = threading.Barrier(2, timeout=60)  # opens when both threads have arrived
    with Threads(2) as threads:
        names = threads.map(lambda _: (meeting.wait(), threading.get_ident())[1], [0, 1])
    assert len(set(names)) == 2
    assert threading.get_ident() in names


@pytest.mark.parametrize("by_the_caller", [True, False])
def test_an_error_in_any_thread_reaches_the_caller(by_the_caller):
    caller = threading.get_ident()
    meeting = threading.Barrier(2, timeout=60)

    def work(_):
        meeting.wait()
        if (threading.get_ident() == caller) == by_the_caller:
            raise MemoryError("too much")

    with Threads(2) as threads:
        with pytest.raises(MemoryError, match="too much"):
            threads.map(work, [0, 1])
        assert threads.map(abs, [-1, 2]) == [1, 2]  # still usable
