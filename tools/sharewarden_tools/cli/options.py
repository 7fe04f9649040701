"""Options and arguments that several commands share, and how a command gets at its work."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

EXIT_CODES = "Exit codes: 0 done; 1 refused, or a check failed; 2 bad input; 3 AWS could not be asked."

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Stack = Annotated[
    str | None, typer.Option("--stack", metavar="NAME", help="CloudFormation stack to work on.")
]
Local = Annotated[
    bool,
    typer.Option(
        "--local", help="Work on the local stack that `sharewarden local serve` runs in this folder."
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port on 127.0.0.1; 0 takes any free one.")]
Job = Annotated[str, typer.Argument(metavar="JOB", help="Id, ARN, or a name that only one job has.")]
PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY", help="The policy as YAML; - reads stdin.")]
Reason = Annotated[str, typer.Option(help="Why; it goes on record.")]
Message = Annotated[str, typer.Option(help="Why; it goes on record.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]


def opened(stack: str | None, local: bool) -> Any:
    """The deployment that a command works on. Raises BadInput, Unavailable."""
    return work_of("deployment").open_deployment(stack, local=local)


def opened_site(stack: str | None, local: bool) -> Any:
    """The same with the AWS around it. Raises BadInput, Unavailable."""
    return import_module("sharewarden_tools.operations.site").open_site(stack, local=local)


def work_of(module: str) -> Any:
    """A module of this package: the AWS stand-ins alone take a second to import."""
    return import_module(f"{__package__}.{module}")
