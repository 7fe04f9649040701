"""The surface of ``sharewarden policy`` and ``sharewarden shadow``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import EXIT_CODES, Json, Local, Message, PolicyFile, Stack, Yes, opened, opened_site, work_of

policy_app = typer.Typer(help="What may be done, as one YAML file.", no_args_is_help=True)
shadow_app = typer.Typer(help="What would be done, were it enforced.", no_args_is_help=True)


@policy_app.command("check", epilog=EXIT_CODES)
def policy_check(file: PolicyFile, *, as_json: Json = False) -> None:
    """Say everything that is wrong with a policy, and where. Never touches AWS."""
    raise typer.Exit(work_of("policy").check(file, as_json=as_json))


@policy_app.command("test", epilog=EXIT_CODES)
def policy_test(
    file: PolicyFile,
    *,
    cases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The cases; else POLICY's name with .tests.yaml.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the cases beside a policy through the deployed decision. Never touches AWS."""
    raise typer.Exit(work_of("policy").test(file, cases, as_json=as_json))


@policy_app.command("schema", epilog=EXIT_CODES)
def policy_schema() -> None:
    """Print the JSON Schema of policies, for editors."""
    raise typer.Exit(work_of("policy").schema())


@policy_app.command("push", epilog=EXIT_CODES)
def policy_push(
    file: PolicyFile,
    *,
    message: Message = "",
    yes: Yes = False,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Put a policy in force: checked, shown as a difference, confirmed, versioned, on record."""
    work = work_of("policy_push")
    asked = work.Asked(message, yes, as_json)
    raise typer.Exit(work.push_policy(opened_site(stack, local), file, asked))


@policy_app.command("rollback", epilog=EXIT_CODES)
def policy_rollback(
    version: Annotated[
        str, typer.Argument(metavar="VERSION", help="A version's number, or the beginning of its hash.")
    ],
    *,
    message: Message = "",
    yes: Yes = False,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Put an earlier version in force again: pushed anew, under a number of its own."""
    work = work_of("policy_push")
    asked = work.Asked(message, yes, as_json)
    raise typer.Exit(work.roll_back(opened_site(stack, local), version, asked))


@policy_app.command("diff", epilog=EXIT_CODES)
def policy_diff(
    file: PolicyFile, *, stack: Stack = None, local: Local = False, as_json: Json = False
) -> None:
    """Show what a policy would change of the one in force, by path and in words."""
    written = work_of("policy_push").read_written(file)
    raise typer.Exit(work_of("policy_show").diff(opened_site(stack, local), written.policy, as_json=as_json))


@policy_app.command("show", epilog=EXIT_CODES)
def policy_show(
    *,
    version: Annotated[
        str | None, typer.Option(help="A number, or the beginning of a hash; else the one in force.")
    ] = None,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Print a policy as it was written."""
    raise typer.Exit(work_of("policy_show").show(opened_site(stack, local), version, as_json=as_json))


@policy_app.command("history", epilog=EXIT_CODES)
def policy_history(
    *,
    most: Annotated[
        int, typer.Option("--limit", min=1, max=1_000_000, help="How many versions at most.")
    ] = 20,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """List the versions, newest first: number, hash, when, by whom, why."""
    raise typer.Exit(work_of("policy_show").history(opened_site(stack, local), most, as_json=as_json))


@shadow_app.command("report", epilog=EXIT_CODES)
def shadow_report(
    *,
    since: Annotated[str, typer.Option(help="A duration back from now, or an RFC 3339 time.")] = "7d",
    queue: Annotated[str | None, typer.Option(help="A queue's name; else every queue.")] = None,
    share: Annotated[str | None, typer.Option(help="A quota share's name; else every share.")] = None,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """List what guardrails found: per guardrail what would have been asked for, or was, with the jobs."""
    work = work_of("shadow")
    asked = work.Asked(since, queue, share)
    raise typer.Exit(work.report(opened(stack, local), asked, as_json=as_json))
