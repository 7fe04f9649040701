"""``sharewarden replay``: a workload on the lab, and what became of it. Reads no account."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from sharewarden_tools.operations.progress import Tell, progress
from sharewarden_tools.policy.problems import BadFile
from sharewarden_tools.replay.compare import Run, comparison, run_of
from sharewarden_tools.replay.numbers import numbers
from sharewarden_tools.replay.picture import picture
from sharewarden_tools.replay.pool import lab_options
from sharewarden_tools.replay.run import HEURISTICS, replay
from sharewarden_tools.replay.table import heading, table, team_table
from sharewarden_tools.replay.trace import COLUMNS, read_trace
from sharewarden_tools.replay.trace_workload import BadPool, Pool, trace_workload
from sharewarden_tools.replay.week import synthetic_week
from sharewarden_tools.replay.workload import Workload

from .output import OK, BadInput, note, print_json, say, unreadable


class Asked(NamedTuple):
    """The options that both commands have."""

    seed: int
    seeds: int
    heuristic: str
    svg: Path | None


class Told(NamedTuple):
    """What is said of a trace: ``team=tenant`` and ``vision=160``, and the load of a pool made to measure."""

    columns: Sequence[str]
    pool: Sequence[str]
    load: float | None


def replay_week(asked: Asked, *, stormy: bool, load: float, as_json: bool) -> int:
    """Play synthetic weeks and print the comparison."""
    return _compare(lambda seed: synthetic_week(seed, stormy=stormy, load=load), asked, as_json=as_json)


def replay_trace(file: Path, told: Told, asked: Asked, *, as_json: bool) -> int:
    """Play a trace; the seeds differ in what is assumed beside it. Raises BadInput."""
    if told.pool and told.load is not None:
        raise BadInput("--load is for a pool that is made to measure: leave out --pool or --load")
    pool = Pool(_pool(told.pool), numbers().trace.load if told.load is None else told.load)
    try:
        trace = read_trace(file, _columns(told.columns))
        return _compare(lambda seed: trace_workload(file.name, trace, seed, pool), asked, as_json=as_json)
    except OSError as error:
        raise unreadable(file, error) from error
    except BadFile as error:
        raise BadInput(*error.lines) from error
    except BadPool as error:
        raise BadInput(f"{file}: {error}") from error


def _compare(workload_of: Callable[[int], Workload], asked: Asked, *, as_json: bool) -> int:
    first = workload_of(asked.seed)
    runs = _runs(workload_of, asked)
    if as_json:
        print_json(_document(first, runs))
    else:
        say(*heading(first, runs), "", *table(runs), "", *team_table(runs))
    if asked.svg:
        asked.svg.write_text(picture(first.title, runs))
        note(f"the picture is in {asked.svg}")
    return OK


def _runs(workload_of: Callable[[int], Workload], asked: Asked) -> list[Run]:
    heuristics = HEURISTICS if asked.heuristic == "all" else (asked.heuristic,)
    runs = []
    with progress() as tell:
        for seed in range(asked.seed, asked.seed + asked.seeds):
            workload = workload_of(seed)
            for heuristic in heuristics:
                said = _naming(tell, f"seed {seed}, {heuristic}")
                outcome = replay(workload, lab_options(heuristic), seed, tell=said)
                runs.append(run_of(outcome, seed))
    return runs


def _naming(tell: Tell, which: str) -> Tell:
    return lambda text: tell(f"{which}, {text}")


def _document(workload: Workload, runs: Sequence[Run]) -> dict[str, object]:
    return {
        "simulated": True,
        "workload": workload.title,
        "shares": {share.name: share.gpus for share in workload.shares},
        "assumed": workload.assumed,
        **comparison(runs),
    }


def _columns(pairs: Sequence[str]) -> dict[str, str]:
    """Raises BadInput."""
    renamed = dict(_pair(text, "--column", "team=tenant") for text in pairs)
    if strange := [name for name in renamed if name not in COLUMNS]:
        raise BadInput(f"--column: no column is called {strange[0]!r}; there is {', '.join(COLUMNS)}")
    return renamed


def _pool(pairs: Sequence[str]) -> dict[str, int]:
    """Raises BadInput."""
    shares = dict(_pair(text, "--pool", "vision=16") for text in pairs)
    for team, gpus in shares.items():
        if not gpus.isascii() or not gpus.isdigit() or len(gpus) > 6:
            raise BadInput(f"--pool: {team}={gpus}: write a number of GPUs, such as {team}=16")
    return {team: int(gpus) for team, gpus in shares.items()}


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise BadInput(f"{option}: {text!r} is no pair: write for example {option} {example}")
    return name, value
