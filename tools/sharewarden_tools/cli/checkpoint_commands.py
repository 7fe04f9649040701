"""The surface of ``sharewarden checkpoints``."""

from __future__ import annotations

import typer

from .options import EXIT_CODES, Job, Json, Local, Stack, opened, work_of

checkpoints_app = typer.Typer(help="What jobs have saved.", no_args_is_help=True)


@checkpoints_app.command("list", epilog=EXIT_CODES)
def checkpoints_list(*, job: Job, stack: Stack = None, local: Local = False, as_json: Json = False) -> None:
    """List a job's checkpoint sets, newest first: complete or not, and what is lacking. Reads only."""
    raise typer.Exit(work_of("checkpoints").list_checkpoints(opened(stack, local), job, as_json=as_json))
