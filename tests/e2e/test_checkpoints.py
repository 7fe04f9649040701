"""`sharewarden checkpoints list` on the local stack: what the lab's jobs and people's scripts saved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sharewarden.domain.checkpoints import place_of
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.ports import Denied
from sharewarden_tools.cli.checkpoints import list_checkpoints
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import ACCOUNT, REGION, LocalStack, Setup, local_stack
from sharewarden_tools.stories.three_team import START, create_pool, submit

AT = START + 40 * MINUTE


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with local_stack(VirtualClock(START), Setup(seed=5)) as running:
        create_pool(running)
        submit(running, "background-1", HOUR)
        running.run_until(AT)
        yield running


def listed(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    deployment = Deployment(
        "local stack", ACCOUNT, REGION, "ana", stack.runtime, stack.client("batch", "ana")
    )
    assert list_checkpoints(deployment, "background-1", as_json=True) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_what_a_job_of_the_lab_saved_is_found(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(stack, capsys)
    newest = found["newest"]
    assert (newest["layout"], found["partial"]) == ("manifest", False)
    assert 0 <= AT - newest["saved_at"] <= 10 * MINUTE
    assert newest["step"] > 0
    assert {row["state"] for row in found["sets"]} == {"complete"}


def test_what_a_script_saves_now_is_of_the_storys_time(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket, prefix = place_of(listed(stack, capsys)["uri"])
    s3 = stack.client("s3", "ana")
    for name in ("model.safetensors", "trainer_state.json"):
        s3.put_object(Bucket=bucket, Key=f"{prefix}checkpoint-999999/{name}", Body=b"1")
    newest = listed(stack, capsys)["newest"]
    assert (newest["layout"], newest["step"], newest["saved_at"]) == ("hugging-face", 999_999, AT)


def test_a_bucket_that_is_not_there_is_refused(stack: LocalStack) -> None:
    with pytest.raises(Denied, match="NoSuchBucket"):
        list(stack.runtime.checkpoints.pages("s3://not-there/run"))
