"""The surface of ``sharewarden sla``."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import EXIT_CODES, Json, Local, Stack, opened, work_of

sla_app = typer.Typer(help="How long jobs with an SLA have waited, and may wait.", no_args_is_help=True)


@sla_app.command("forecast", epilog=EXIT_CODES)
def forecast(
    *,
    queue: Annotated[str | None, typer.Option(help="Of one queue, by name or ARN; else of all.")] = None,
    share: Annotated[str | None, typer.Option(help="Of one quota share; else of all.")] = None,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Show each waiting job with an SLA: time used, the next step, whom that may push out. Reads only.

    This version carries out no step of a ladder: it shows what would be due.
    """
    raise typer.Exit(work_of("sla").show_forecast(opened(stack, local), queue, share, as_json=as_json))
