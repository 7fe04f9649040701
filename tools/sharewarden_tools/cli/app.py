"""The surface of the command: names, options, help. Each command imports its work when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from sharewarden.ports import Unavailable
from sharewarden.usecases.bump import Refused

from .output import BAD_INPUT, REFUSED, UNAVAILABLE, BadInput, note, say

EXIT_CODES = "Exit codes: 0 done; 1 refused, or a check failed; 2 bad input; 3 AWS could not be asked."

app = typer.Typer(
    name="sharewarden",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
lab_app = typer.Typer(help="AWS Batch quota management, emulated.", no_args_is_help=True)
local_app = typer.Typer(help="The whole product on this machine.", no_args_is_help=True)
audit_app = typer.Typer(help="The append-only record of what happened and why.", no_args_is_help=True)
policy_app = typer.Typer(help="What may be done, as one YAML file.", no_args_is_help=True)
shadow_app = typer.Typer(help="What would be done, were it enforced.", no_args_is_help=True)
app.add_typer(lab_app, name="lab")
app.add_typer(local_app, name="local")
app.add_typer(audit_app, name="audit")
app.add_typer(policy_app, name="policy")
app.add_typer(shadow_app, name="shadow")

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


@app.command(epilog=EXIT_CODES)
def demo(
    as_json: Json = False,
    seed: Annotated[
        int, typer.Option(help="Another seed gives other durations; the same one the same story.")
    ] = 7,
) -> None:
    """Play the three-team story on this machine: real handlers, no AWS account."""
    raise typer.Exit(_work("demo").demo(seed, as_json=as_json))


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
    raise typer.Exit(_work("react").react(file, describe, as_json=as_json))


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
    work = _work("preflight")
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
    work = _work("jobs")
    asked = work.Raise(to, by, lasts, reason)
    raise typer.Exit(work.bump_job(_open(stack, local), job, asked, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def unbump(
    *, job: Job, reason: Reason, stack: Stack = None, local: Local = False, as_json: Json = False
) -> None:
    """End every bump of a job."""
    work = _work("jobs")
    raise typer.Exit(work.unbump_job(_open(stack, local), job, reason=reason, as_json=as_json))


@app.command(epilog=EXIT_CODES)
def doctor(*, stack: Stack = None, local: Local = False, as_json: Json = False) -> None:
    """Look whether a deployment works. Reads only."""
    raise typer.Exit(_work("doctor").doctor(_open_site(stack, local), as_json=as_json))


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
    work = _work("redrive")
    asked = work.Asked(only, discard, show, yes)
    raise typer.Exit(work.redrive(_open_site(stack, local), asked, as_json=as_json))


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
    work = _work("drain")
    asked = work.Asked(reason, now, timeout, yes)
    raise typer.Exit(work.drain(_open_site(stack, local), asked, as_json=as_json))


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
    work = _work("audit")
    raise typer.Exit(work.list_audit(_open(stack, local), share=share, job=job, since=since, as_json=as_json))


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
    work = _work("usage")
    asked = work.Asked(team, period, since, until, prices)
    raise typer.Exit(work.show_usage(_open(stack, local), asked, as_json=as_json))


@policy_app.command("check", epilog=EXIT_CODES)
def policy_check(file: PolicyFile, *, as_json: Json = False) -> None:
    """Say everything that is wrong with a policy, and where. Never touches AWS."""
    raise typer.Exit(_work("policy").check(file, as_json=as_json))


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
    raise typer.Exit(_work("policy").test(file, cases, as_json=as_json))


@policy_app.command("schema", epilog=EXIT_CODES)
def policy_schema() -> None:
    """Print the JSON Schema of policies, for editors."""
    raise typer.Exit(_work("policy").schema())


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
    work = _work("policy_push")
    asked = work.Asked(message, yes, as_json)
    raise typer.Exit(work.push_policy(_open_site(stack, local), file, asked))


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
    work = _work("policy_push")
    asked = work.Asked(message, yes, as_json)
    raise typer.Exit(work.roll_back(_open_site(stack, local), version, asked))


@policy_app.command("diff", epilog=EXIT_CODES)
def policy_diff(
    file: PolicyFile, *, stack: Stack = None, local: Local = False, as_json: Json = False
) -> None:
    """Show what a policy would change of the one in force, by path and in words."""
    written = _work("policy_push").read_written(file)
    raise typer.Exit(_work("policy_show").diff(_open_site(stack, local), written.policy, as_json=as_json))


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
    raise typer.Exit(_work("policy_show").show(_open_site(stack, local), version, as_json=as_json))


@policy_app.command("history", epilog=EXIT_CODES)
def policy_history(
    *,
    most: Annotated[int, typer.Option("--limit", min=1, help="How many versions at most.")] = 20,
    stack: Stack = None,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """List the versions, newest first: number, hash, when, by whom, why."""
    raise typer.Exit(_work("policy_show").history(_open_site(stack, local), most, as_json=as_json))


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
    """List what guardrails found: per guardrail what would have been done, or was, with the jobs."""
    work = _work("shadow")
    asked = work.Asked(since, queue, share)
    raise typer.Exit(work.report(_open(stack, local), asked, as_json=as_json))


@lab_app.command("serve", epilog=EXIT_CODES)
def lab_serve(
    port: Port = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Seconds where AWS takes minutes, as in `local serve`.")
    ] = False,
) -> None:
    """Serve Batch, SageMaker and SQS for any AWS SDK, until Ctrl-C."""
    raise typer.Exit(_work("serve").serve_lab(port, quick=quick))


@local_app.command("serve", epilog=EXIT_CODES)
def local_serve(
    port: Port = 0,
    story: Annotated[
        bool, typer.Option("--story", help="Submit the jobs of the three teams; they take about 20 minutes.")
    ] = False,
) -> None:
    """Serve the lab and the real handlers around it, with a three-team pool, until Ctrl-C."""
    raise typer.Exit(_work("serve").serve_local(port, story=story))


def _open(stack: str | None, local: bool) -> Any:
    return _work("deployment").open_deployment(stack, local=local)


def _open_site(stack: str | None, local: bool) -> Any:
    return import_module("sharewarden_tools.operations.site").open_site(stack, local=local)


def _work(module: str) -> Any:
    """A module of this package: the AWS stand-ins alone take a second to import."""
    return import_module(f"{__package__}.{module}")
