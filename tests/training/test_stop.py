"""SIGTERM in real processes: one more save, then the script ends as it likes."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from sharewarden_checkpoint import Manifest, Saver, Stop
from sharewarden_checkpoint.manifest import NAME

from tests.training.kit import python, save

TRAIN = """
import sys, time
from pathlib import Path
from sharewarden_checkpoint import Saver
from tests.training.kit import save
with Saver(sys.argv[1], every=3600) as saver:
    newest = saver.latest()
    first = newest.step + 1 if newest else 0
    print(first, flush=True)
    for step in range(first, 100_000):
        time.sleep(0.001)
        if saver.should_save(step):
            save(saver, step)
        if saver.stopping:
            break
print(step, flush=True)
sys.exit(7)
"""


def test_a_stop_is_one_save_and_the_next_attempt_goes_on_from_it(tmp_path: Path) -> None:
    expected = 0
    for _ in range(3):
        with python(TRAIN, str(tmp_path)) as process:
            assert process.stdout is not None
            assert int(process.stdout.readline()) == expected
            process.terminate()
            last = int(process.stdout.readline())
        assert process.returncode == 7, "the script's own end, not the signal's"
        newest = Saver(tmp_path).latest()
        assert newest is not None
        assert newest.step == last
        assert Manifest.from_json((newest.folder / NAME).read_bytes()).reason == "stop"
        expected = last + 1


def test_a_script_may_go_on_and_a_second_signal_saves_again(tmp_path: Path) -> None:
    with Saver(tmp_path) as saver:
        for step in (1, 2):
            assert not saver.should_save(step)
            os.kill(os.getpid(), signal.SIGTERM)
            assert saver.should_save(step)
            save(saver, step)
            assert not saver.should_save(step + 1)
            assert saver.stopping


def test_a_signal_during_a_save_asks_for_another(tmp_path: Path) -> None:
    """What it writes was the state before the signal; a step may have been done since."""
    with Saver(tmp_path) as saver:
        with saver.save(1) as folder:
            os.kill(os.getpid(), signal.SIGTERM)
            (folder / "x").write_text("x")
        assert saver.should_save(2)


def test_the_handler_before_is_called_too_and_put_back(tmp_path: Path) -> None:
    calls: list[int] = []
    original = signal.signal(signal.SIGTERM, lambda number, _frame: calls.append(number))
    try:
        mine = signal.getsignal(signal.SIGTERM)
        with Saver(tmp_path) as saver:
            os.kill(os.getpid(), signal.SIGTERM)
            assert (saver.stopping, calls) == (True, [signal.SIGTERM])
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, original)


def test_a_handler_set_later_stays(tmp_path: Path) -> None:
    original = signal.getsignal(signal.SIGTERM)
    try:
        with Saver(tmp_path):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, original)


def test_in_another_thread_there_are_no_signals_but_the_rest_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None:
        with Saver(tmp_path) as saver:
            save(saver, 1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert Saver(tmp_path).latest() is not None
    assert "SIGTERM is not seen" in caplog.text


def test_a_forked_worker_still_dies_of_it() -> None:
    """As a data loader's worker that its parent terminates."""
    code = (
        "import os, signal, time\n"
        "from sharewarden_checkpoint import Stop\n"
        "stop = Stop(); stop.install()\n"
        "reading, writing = os.pipe()\n"
        "child = os.fork()\n"
        "if not child: os.write(writing, b'.'); time.sleep(60); os._exit(0)\n"
        "os.read(reading, 1)  # just after a fork Python drops signals\n"
        "os.kill(child, signal.SIGTERM)\n"
        "print(os.WTERMSIG(os.waitpid(child, 0)[1]), stop.count)"
    )
    with python(code) as process:
        assert process.stdout is not None
        assert process.stdout.read() == f"{int(signal.SIGTERM)} 0\n"


def test_restoring_what_was_never_installed_changes_nothing() -> None:
    before = signal.getsignal(signal.SIGTERM)
    Stop().restore()
    assert signal.getsignal(signal.SIGTERM) is before
