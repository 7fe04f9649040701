"""The surface of the command: names, options, help. Each command imports its work when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import typer
from sharewarden.ports import Unavailable
from sharewarden.usecases.bump import Refused

from .checkpoint_commands import checkpoints_app
from .options import EXIT_CODES, Job, Json, Local, Port, Reason, Stack, Yes, opened, opened_site, work_of
from .output import BAD_INPUT, REFUSED, UNAVAILABLE, BadInput, note, say
from .policy_commands import policy_app, shadow_app
from .replay_commands import replay_app
from .sla_commands import sla_app

app = typer.Typer(
    name="sharewarden",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
lab_app = typer.Typer(help="AWS Batch quota management, emulated.", no_args_is_help=True)
local_app = typer.Typer(help="The whole product on this machine.", no_args_is_help=True)
notices_app = typer.Typer(help="What people are told of.", no_args_is_help=True)
audit_app = typer.Typer(help="The append-only record of what happened and why.", no_args_is_help=True)
app.add_typer(lab_app, name="lab")
app.add_typer(local_app, name="local")
app.add_typer(audit_app, name="audit")
app.add_typer(notices_app, name="notices")
app.add_typer(checkpoints_app, name="checkpoints")
app.add_typer(policy_app, name="policy")
app.add_typer(shadow_app, name="shadow")
app.add_typer(replay_app, name="replay")
app.add_typer(sla_app, name="sla")

Priority = typer.Option(min=0, max=9999, help="The priority to reach.")
Points = typer.Option(min=1, max=9999, help="The points to add.")


def _version(wanted: bool) -> None:
    if wanted:
        say(f"sharewarden {version('sharewarden')}")
        raise typer.Exit


@app.callback()
def about(
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Say which.")
    ] = False,
) -> None:
    """Records, audit and bounded priorities for AWS Batch quota shares."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command; ends with SystemExit and one of the documented codes."""
    try:
        app(args=args)
    except BadInput as error:
        note(*error.lines)
        sys.exit(BAD_INPUT)
    except Refused as error:
        note(f"refused: {error}")
        sys.exit(REFUSED)
    except Unavailable as error:
        note(f"AWS could not be asked: {error}")
        sys.exit(UNAVAILABLE)
    except OSError as error:  # a full disk behind stdout; files are told of where they are read
        note(f"{error.filename or 'stdout'}: {(error.strerror or str(error)).lower()}")
        sys.exit(REFUSED)


@app.command(epilog=EXIT_CODES)
def demo(
    as_json: Json = False,
    seed: Annotated[
        int, typer.Option(help="Another seed gives other durations; the same one the same story.")
    ] = 7,
) -> None:
    """Play the three-team story on this machine: real handlers, no AWS account."""
    raise typer.Exit(work_of("demo").demo(seed, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def react(
    file: Annotated[
        Path, typer.Argument(help="An EventBridge event as JSON, for example events/*.json; - reads stdin.")
    ],
    describe: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What DescribeServiceJob answers, as in examples/describe_service_job.json."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what the handler makes of an event. In memory: AWS is never asked."""
    raise typer.Exit(work_of("react").react(file, describe, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def preflight(
    file: Annotated[Path, typer.Argument(help="A SubmitServiceJob request as JSON or YAML; - reads stdin.")],
    *,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A policy that is not deployed.")
    ] = None,
    shares: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `aws batch list-quota-shares` answered.")
    ] = None,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Say what the policy will find of a job, before it is submitted. Reads only.

    Code 1: the job could never start, or a guardrail would change or end it.
    """
    work = work_of("preflight")
    sources = work.Sources(policy, shares, stack, local)
    raise typer.Exit(work.preflight(file, sources, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def bump(  # noqa: PLR0913 - one parameter an option
    *,
    job: Job,
    reason: Reason,
    to: Annotated[int | None, Priority] = None,
    by: Annotated[int | None, Points] = None,
    lasts: Annotated[
        str | None,
        typer.Option("--for", help="For how long: 30m, 4h, 1h30m, 2d. Without it: until somebody ends it."),
    ] = None,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Raise a job's priority inside its share: until --for is over, the job ends, or somebody unbumps it."""
    work = work_of("jobs")
    asked = work.Raise(to, by, lasts, reason)
    raise typer.Exit(work.bump_job(opened(stack, local), job, asked, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def unbump(
    *, job: Job, reason: Reason, stack: Stack = None, local: Local = False, as_json: Json = False
) -> None:
    """End every bump of a job."""
    work = work_of("jobs")
    raise typer.Exit(work.unbump_job(opened(stack, local), job, reason=reason, as_json=as_json))


@app.command("can-help", epilog=EXIT_CODES)
def can_help(
    *,
    job: Job,
    to: Annotated[
        int | None,
        typer.Option(
            min=0, max=9999, help="The priority to bump it to; else the highest that a bump may reach."
        ),
    ] = None,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Say whether a bump would start a waiting job, whom it may push out, and what would instead. Reads only.

    Code 0: it does, now or from the time that is told; 1: it does not; 3: that is not known.
    """
    raise typer.Exit(work_of("can_help").show_help(opened(stack, local), job, to, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def doctor(*, stack: Stack = None, local: Local = False, as_json: Json = False) -> None:
    """Look whether a deployment works. Reads only."""
    raise typer.Exit(work_of("doctor").doctor(opened_site(stack, local), as_json=as_json))


@app.command(epilog=EXIT_CODES)
def redrive(  # noqa: PLR0913 - one parameter an option
    *,
    only: Annotated[str | None, typer.Option(metavar="TEXT", help="Those whose reason contains it.")] = None,
    discard: Annotated[
        str | None, typer.Option(metavar="WHY", help="Delete them instead, for good; why goes on record.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the bodies too, without what is private.")
    ] = False,
    yes: Yes = False,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Show the dead letters and send them back to where they came from."""
    work = work_of("redrive")
    asked = work.Asked(only, discard, show, yes)
    raise typer.Exit(work.redrive(opened_site(stack, local), asked, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def drain(  # noqa: PLR0913 - one parameter an option
    *,
    reason: Reason = "drained before Sharewarden is taken away",
    now: Annotated[
        bool,
        typer.Option("--now", help="Do not wait for holds: jobs that a boost started are likelier victims."),
    ] = False,
    timeout: Annotated[str, typer.Option(help="Stop waiting after this time: 30m, 4h.")] = "1h",
    yes: Yes = False,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """End every boost and wait until each job is back at its base, before an uninstall."""
    work = work_of("drain")
    asked = work.Asked(reason, now, timeout, yes)
    raise typer.Exit(work.drain(opened_site(stack, local), asked, as_json=as_json))


@audit_app.command("list", epilog=EXIT_CODES)
def audit_list(
    *,
    share: Annotated[str | None, typer.Option(help="A quota share's name.")] = None,
    job: Annotated[str | None, typer.Option(help="A job's id, ARN, or unique name.")] = None,
    since: Annotated[str, typer.Option(help="A duration back from now, or an RFC 3339 time.")] = "1d",
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """List the records of a share or a job, oldest first."""
    work = work_of("audit")
    raise typer.Exit(
        work.list_audit(opened(stack, local), share=share, job=job, since=since, as_json=as_json)
    )


@audit_app.command("lineage", epilog=EXIT_CODES)
def audit_lineage(
    job: Job,
    *,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """List the records of a job, of those that it replaces, and of those it was submitted again as."""
    work = work_of("audit")
    raise typer.Exit(work.list_lineage(opened(stack, local), job, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def usage(  # noqa: PLR0913 - one parameter an option
    *,
    team: Annotated[str | None, typer.Option(help="Of one team; else of all.")] = None,
    period: Annotated[
        Literal["day", "week", "month"], typer.Option(help="UTC days, weeks from Monday, or calendar months.")
    ] = "month",
    since: Annotated[
        str | None,
        typer.Option(
            help="A duration back from now, or an RFC 3339 time; without it: now. Periods count whole."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Likewise.")] = None,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your prices, as in examples/prices.EXAMPLE.yaml.")
    ] = None,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Show the GPU-hours of each team by period, owned and borrowed, beside its budgets. Reads only."""
    work = work_of("usage")
    asked = work.Asked(team, period, since, until, prices)
    raise typer.Exit(work.show_usage(opened(stack, local), asked, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def preemptions(
    *,
    share: Annotated[str | None, typer.Option(help="Of one quota share; else of all.")] = None,
    since: Annotated[str, typer.Option(help="A duration back from now, or an RFC 3339 time.")] = "7d",
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Show what preemptions cost each share: GPU-hours, pauses, causes, who was behind. Reads only."""
    work = work_of("preemptions")
    raise typer.Exit(work.show_preemptions(opened(stack, local), share=share, since=since, as_json=as_json))


@notices_app.command("list", epilog=EXIT_CODES)
def notices_list(
    *,
    told: Annotated[bool, typer.Option("--all", help="Those that people were told of, too.")] = False,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """List the notices that nobody was told of so far, and why; they are kept for 30 days."""
    work = work_of("notices")
    raise typer.Exit(work.list_notices(opened(stack, local), told=told, as_json=as_json))


@lab_app.command("serve", epilog=EXIT_CODES)
def lab_serve(
    port: Port = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Seconds where AWS takes minutes, as in `local serve`.")
    ] = False,
) -> None:
    """Serve Batch, SageMaker and SQS for any AWS SDK, until Ctrl-C."""
    raise typer.Exit(work_of("serve").serve_lab(port, quick=quick))


@local_app.command("serve", epilog=EXIT_CODES)
def local_serve(
    port: Port = 0,
    story: Annotated[
        bool, typer.Option("--story", help="Submit the jobs of the three teams; they take about 20 minutes.")
    ] = False,
) -> None:
    """Serve the lab and the real handlers around it, with a three-team pool, until Ctrl-C."""
    raise typer.Exit(work_of("serve").serve_local(port, story=story))
