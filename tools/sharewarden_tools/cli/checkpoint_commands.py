"""The surface of ``sharewarden checkpoints``."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import EXIT_CODES, Job, Json, Local, Stack, Yes, opened, work_of

checkpoints_app = typer.Typer(help="What jobs have saved.", no_args_is_help=True)

Attempt = Annotated[
    str | None,
    typer.Option(metavar="TRAINING_JOB", help="Of the preemption of this attempt, by name or ARN."),
]


@checkpoints_app.command("list", epilog=EXIT_CODES)
def checkpoints_list(*, job: Job, stack: Stack = None, local: Local = False, as_json: Json = False) -> None:
    """List a job's checkpoint sets, newest first: complete or not, and what is lacking. Reads only."""
    raise typer.Exit(work_of("checkpoints").list_checkpoints(opened(stack, local), job, as_json=as_json))


@checkpoints_app.command("pins", epilog=EXIT_CODES)
def checkpoints_pins(*, job: Job, stack: Stack = None, local: Local = False, as_json: Json = False) -> None:
    """List the sets that were pinned when the job was preempted, the latest first. Reads only."""
    raise typer.Exit(work_of("pins").list_pins(opened(stack, local), job, as_json=as_json))


@checkpoints_app.command("restore", epilog=EXIT_CODES)
def checkpoints_restore(  # noqa: PLR0913 - one parameter an option
    *,
    job: Job,
    attempt: Attempt = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be copied.")] = False,
    yes: Yes = False,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Copy the latest pinned set back: the files that are missing or changed, from their S3 versions.

    Asks when a newer complete checkpoint is there, or may be, and when a file has another content now.
    """
    work = work_of("pins")
    asked = work.Asked(attempt, dry_run, yes)
    raise typer.Exit(work.restore_checkpoint(opened(stack, local), job, asked, as_json=as_json))


@checkpoints_app.command("unpin", epilog=EXIT_CODES)
def checkpoints_unpin(
    *, job: Job, attempt: Attempt = None, yes: Yes = False, stack: Stack = None, local: Local = False
) -> None:
    """Let go of the pins of a job. Nothing is changed in S3."""
    raise typer.Exit(work_of("pins").unpin_checkpoints(opened(stack, local), job, attempt, yes=yes))
