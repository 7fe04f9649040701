"""``sharewarden redrive`` on the local stack: nothing is lost, and every reason is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.cli.redrive import Asked
from sharewarden_tools.cli.redrive import redrive as redrive_command
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import ACCOUNT, REGION, LocalStack, Setup, local_stack, queue_arn
from sharewarden_tools.operations.redrive import Letters
from sharewarden_tools.operations.site import Site
from sharewarden_tools.stories.three_team import QUEUE, START

from tests.e2e.operations_kit import lay, site_of

QUEUES = ("EventsQueue", "EventsDeadLetters", "WishesQueue", "WishesDeadLetters")


@pytest.fixture(scope="module")
def running() -> Iterator[LocalStack]:
    with local_stack(VirtualClock(START), Setup()) as running:
        yield running


NUMBERS = count()


@pytest.fixture
def stack(running: LocalStack) -> LocalStack:
    for name in QUEUES:
        site_of(running).client("sqs").purge_queue(QueueUrl=site_of(running).queue_url(name))
    return running


def event(**more: object) -> str:
    job = f"arn:aws:batch:{REGION}:{ACCOUNT}:service-job/53f51099-d4c3-5e90-ac11-be55089a1763"
    detail = {
        "jobArn": job,
        "jobName": "background-1",
        "jobQueue": queue_arn(QUEUE),
        "status": "RUNNING",
        "createdAt": START,
    }
    return json.dumps(
        {
            "version": "0",
            "id": "e1",
            "detail-type": "Batch Service Job State Change",
            "source": "aws.batch",
            "account": ACCOUNT,
            "time": "2026-09-14T08:05:00Z",
            "region": REGION,
            "resources": [job],
            "detail": detail | more,
        }
    )


def lay_wish(stack: LocalStack, body: str, group: str) -> None:
    site_of(stack).client("sqs").send_message(
        QueueUrl=site_of(stack).queue_url("WishesDeadLetters"),
        MessageBody=body,
        MessageGroupId=group,
        MessageDeduplicationId=f"{group}-{next(NUMBERS)}",  # of its own, also at one time in two tests
    )


def redrive(stack: LocalStack, *, as_json: bool = False, **asked: Any) -> int:
    return redrive_command(site_of(stack), Asked(**asked), as_json=as_json)


def waiting(stack: LocalStack) -> int:
    return Letters(site_of(stack)).waiting()


def test_redrive_shows_why_and_moves_each_back(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    lay(stack, event(), reason="Unavailable: GetItem: throttled", origin="events")
    lay(
        stack,
        event(),
        RULE_ARN=f"arn:aws:events:{REGION}:{ACCOUNT}:rule/stack-PreemptionRule-1",
        ERROR_CODE="NO_PERMISSIONS",
        ERROR_MESSAGE="denied",
        RETRY_ATTEMPTS="0",
    )
    lay(
        stack,
        '{"job": "j1", "version": 1}',
        reason="Unavailable: DescribeServiceJob: throttled",
        origin="wishes",
    )
    lay_wish(stack, '{"job": "j2", "version": 1}', "j2")
    stack.run_until(stack.now() + 2 * HOUR)
    assert redrive(stack) == 0
    shown, err = capsys.readouterr()
    assert (
        "EventsDeadLetters      1  oldest 2 h ago  from EventBridge, rule stack-PreemptionRule-1: "
        "NO_PERMISSIONS: denied (retry attempts 0)" in shown
    )
    assert "from apply: Unavailable: DescribeServiceJob: throttled" in shown
    assert "WishesDeadLetters      1  oldest 2 h ago  from SQS, from WishesQueue: received too often" in shown
    assert "nothing was changed; --yes to send again 4" in err
    assert waiting(stack) == 4

    assert redrive(stack, yes=True) == 0
    assert "4 moved; about 0 dead letters" in capsys.readouterr().err
    urls = [site_of(stack).queue_url(name) for name in ("EventsQueue", "WishesQueue")]
    sqs = site_of(stack).client("sqs")
    found = [
        sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], VisibilityTimeout=0
        )["Messages"]
        for url in urls
    ]
    assert [len(messages) for messages in found] == [2, 2]
    assert {message["Attributes"]["MessageGroupId"] for message in found[1]} == {"j1", "j2"}
    stack.run_until(stack.now() + MINUTE)
    assert waiting(stack) == 0


def test_what_would_fail_again_is_pointed_out_and_kept(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(stack, "no json", reason="Poison: not an event", origin="events")
    lay(stack, '{"job": 1}', reason="Poison: not a wish", origin="wishes")
    lay(stack, event(), reason="KeyError: 'x'", origin="events")
    assert redrive(stack, yes=True) == 1
    out, err = capsys.readouterr()
    assert out.count("would fail again, so it is not sent") == 2
    assert "1 moved, 2 kept; about 2 dead letters" in err
    assert redrive(stack, yes=True) == 1, "they were released at once"


def test_only_those_with_that_reason(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    lay(stack, event(), reason="Unavailable: GetItem: throttled", origin="events")
    lay(stack, event(), reason="KeyError: 'x'", origin="events")
    assert redrive(stack, yes=True, only="keyerror", as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["moved"], told["waiting"], [row["reason"] for row in told["letters"]]) == (
        1,
        1,
        ["KeyError: 'x'"],
    )
    assert redrive(stack, yes=True, only="throttled") == 0
    assert waiting(stack) == 0


def test_what_is_discarded_is_a_gap_on_record(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    lay(stack, '{"job": 1}', reason="Poison: not a wish", origin="wishes")
    lay_wish(stack, '{"job": "j2", "version": 1}', "j2")
    with pytest.raises(BadInput, match="say why"):
        redrive(stack, yes=True, discard=" ")
    assert redrive(stack, discard="from a test") == 0
    assert "nothing was changed; --yes to delete 2" in capsys.readouterr().err
    assert redrive(stack, yes=True, discard="from a test") == 0
    assert waiting(stack) == 0
    (gap,) = stack.runtime.audit.by_job("j2", 0)
    assert (gap.kind, gap.actor, gap.reason) == ("gap", "ana", "a message was discarded unread: from a test")


def test_bodies_are_shown_on_demand_without_what_is_private(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(
        stack,
        event(HyperParameters={"key": "s3cret"}, userIdentity={"accessKeyId": "AKIAX"}),
        reason="KeyError: \x1b[2Jx",
        origin="events",
    )
    lay(stack, "password=s3cret", reason="Poison", origin="events")
    redrive(stack)
    assert "jobName" not in capsys.readouterr().out
    redrive(stack, show=True)
    out = capsys.readouterr().out
    assert '"jobName": "background-1"' in out
    assert "(no JSON, 15 bytes)" in out
    assert "s3cret" not in out
    assert "AKIAX" not in out
    assert "\x1b" not in out


class Dying:
    """An SQS client that breaks after its first ``calls`` calls of an operation."""

    def __init__(self, client: Any, operation: str, calls: int) -> None:
        self._client, self._operation, self._left = client, operation, calls

    def __getattr__(self, name: str) -> Any:
        if name == self._operation:
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt
        return getattr(self._client, name)


@pytest.mark.parametrize("operation", ["send_message", "delete_message"])
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_none_is_lost_when_redrive_is_stopped_anywhere(stack: LocalStack, operation: str, calls: int) -> None:
    bodies = {event(status=status) for status in ("RUNNABLE", "SCHEDULED", "RUNNING")}
    for body in bodies:
        lay(stack, body, reason="KeyError: 'x'", origin="events")
    whole = site_of(stack)

    def client(service: str) -> Any:
        made = whole.client(service)
        return Dying(made, operation, calls) if service == "sqs" else made

    dying = Site(whole.deployment, client, whole.variables)
    with pytest.raises(KeyboardInterrupt):
        redrive_command(dying, Asked(yes=True), as_json=False)
    assert redrive(stack, yes=True) == 0
    sqs, url = site_of(stack).client("sqs"), whole.queue_url("EventsQueue")
    found = [sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]]
    assert {message["Body"] for message in found[0]} == bodies
    assert waiting(stack) == 0


def test_nothing_there_is_said(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    assert redrive(stack, yes=True) == 0
    assert capsys.readouterr().err.endswith("nothing changed; about 0 dead letters lie there now\n")
