"""The surface of ``sharewarden replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .options import EXIT_CODES, Json, work_of

replay_app = typer.Typer(
    help="What would become of a workload (simulated): waits, missed SLAs, lost work.", no_args_is_help=True
)

Seed = Annotated[int, typer.Option(min=0, help="The same one tells the same story.")]
Seeds = Annotated[int, typer.Option(min=1, max=1000, help="So many seeds, from --seed on.")]
Heuristics = Annotated[
    Literal["all", "documented", "random", "adversarial"],
    typer.Option(help="How Batch chooses its victims, which AWS does not publish."),
]
Svg = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the comparison there, as SVG.")]


@replay_app.command("week", epilog=EXIT_CODES)
def replay_week(  # noqa: PLR0913 - one parameter an option
    *,
    seed: Seed = 1,
    seeds: Seeds = 1,
    stormy: Annotated[bool, typer.Option("--stormy", help="Days that differ more from one another.")] = False,
    load: Annotated[float, typer.Option(min=0.01, max=10, help="Factor on the number of sessions.")] = 1.0,
    heuristic: Heuristics = "all",
    svg: Svg = None,
    as_json: Json = False,
) -> None:
    """Play a synthetic week of five teams on 64 GPUs. In memory: AWS is never asked."""
    work = work_of("replay")
    asked = work.Asked(seed, seeds, heuristic, svg)
    raise typer.Exit(work.replay_week(asked, stormy=stormy, load=load, as_json=as_json))


@replay_app.command("trace", epilog=EXIT_CODES)
def replay_trace(  # noqa: PLR0913 - one parameter an option
    file: Annotated[
        Path, typer.Argument(help="Jobs as CSV, with the columns of docs/replay.md; - reads stdin.")
    ],
    *,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="OURS=THEIRS", help="What a column is called in the file; repeat it."),
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(metavar="TEAM=GPUS", help="A team's capacity; repeat it. Else made to measure."),
    ] = None,
    load: Annotated[
        float | None, typer.Option(min=0.01, max=10, help="Load of a pool that is made to measure; else 0.8.")
    ] = None,
    seed: Seed = 1,
    seeds: Seeds = 1,
    heuristic: Heuristics = "all",
    svg: Svg = None,
    as_json: Json = False,
) -> None:
    """Play the jobs of a trace. In memory: AWS is never asked."""
    work = work_of("replay")
    asked, told = work.Asked(seed, seeds, heuristic, svg), work.Told(column or [], pool or [], load)
    raise typer.Exit(work.replay_trace(file, told, asked, as_json=as_json))
