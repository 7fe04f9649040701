"""What a new job is called and submitted with, from the old one alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sharewarden.domain.policy import ResubmitPolicy
from sharewarden.domain.resubmission import (
    LONGEST_NAME,
    Resubmission,
    Submission,
    new_name,
    new_token,
    number_of,
    successor,
    with_our_tags,
)

OLD = Submission(
    name="train",
    queue="q",
    kind="SAGEMAKER_TRAINING",
    payload='{"RoleArn": "r"}',
    share="s",
    priority=300,
    retry={"attempts": 3, "evaluateOnExit": [{"action": "RETRY", "onStatusReason": "x*"}]},
    time_limit={"attemptDurationSeconds": 60},
    preemption={"preemptionRetriesBeforeTermination": 4},
    tags=(("team", "nlp"),),
)


def wish(**update: object) -> Resubmission:
    known: dict[str, Any] = {
        "id": "resubmit-1",
        "name": "train-r1-x",
        "token": "t",
        "number": 1,
        "tags": (("lineage", "job-1"),),
        "attempt": "arn",
        "save": None,
        "step": None,
        "created_at": 1,
        "not_after": 2,
    }
    return Resubmission(**known | update)


@pytest.mark.parametrize("old", ["train", "x" * 128, "a_b-c", "train-r7-0123456789"])
@pytest.mark.parametrize("number", [1, 9999])
def test_a_name_is_one_that_batch_takes_and_names_its_number(old: str, number: int) -> None:
    name = new_name(old, "job-1", number)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,128}", name)
    assert re.search(rf"-r{number}-[0-9a-f]{{10}}$", name)


def test_a_name_does_not_grow_with_the_lineage_and_keeps_what_people_wrote() -> None:
    first = new_name("train-r7-0123456789", "job-1", 1)
    assert first.startswith("train-r7-0123456789-r1-")
    assert new_name(first, "job-2", 2).startswith("train-r7-0123456789-r2-")
    assert len(new_name("x" * 128, "job-1", 1)) == LONGEST_NAME


def test_names_and_tokens_differ_by_job_and_number_and_come_out_the_same() -> None:
    asked = [("job-1", 1), ("job-1", 2), ("job-2", 1)]
    assert len({new_name("train", *one) for one in asked}) == 3
    assert len({new_token(*one) for one in asked}) == 3
    assert {len(new_token(*one)) for one in asked} == {64}
    assert new_name("train", "job-1", 1) == new_name("train", "job-1", 1)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (None, 0),
        ("0", 0),
        ("12", 12),
        ("", None),
        ("-1", None),
        ("1.0", None),
        ("12345", None),
        ("one", None),
        ("²", None),
    ],
)
def test_the_number_is_read_from_the_tag(text: str | None, number: int | None) -> None:
    tags = () if text is None else (("sharewarden-resubmission", text),)
    assert number_of(tags) == number


def test_the_users_tags_are_kept_and_those_of_aws_are_not() -> None:
    tags = (("aws:x", "1"), ("AWS:y", "2"), ("awsome", "3"), ("lineage", "old"))
    assert with_our_tags(tags, (("lineage", "new"),)) == (("awsome", "3"), ("lineage", "new"))


def test_all_else_is_as_it_was() -> None:
    made = successor(OLD, wish(priority=200))
    assert made == OLD.model_copy(
        update={"name": "train-r1-x", "priority": 200, "tags": (("lineage", "job-1"), ("team", "nlp"))}
    )
    assert successor(OLD, wish()).priority == 300


@pytest.mark.parametrize(
    ("preemption", "most", "expected"),
    [
        (None, None, None),
        (None, 3, 3),
        ({}, 3, 3),
        ({"preemptionRetriesBeforeTermination": 4}, None, 4),
        ({"preemptionRetriesBeforeTermination": 4}, 3, 3),
        ({"preemptionRetriesBeforeTermination": 2}, 3, 2),
        ({"preemptionRetriesBeforeTermination": 0}, 3, 0),
        ({"preemptionRetriesBeforeTermination": -1}, 3, 3),
    ],
)
def test_retries_stay_within_the_bound(
    preemption: dict[str, Any] | None, most: int | None, expected: int | None
) -> None:
    made = successor(OLD.model_copy(update={"preemption": preemption}), wish(retries=most))
    assert (made.preemption or {}).get("preemptionRetriesBeforeTermination") == expected


ARN = "arn:aws:iam::123456789012:role/team/Training"


@pytest.mark.parametrize(
    ("roles", "allowed"),
    [
        ((), False),
        (("Training",), True),
        (("training",), False),
        (("Train",), False),
        (("*ing",), True),
        (("team/Training",), False),
        ((ARN,), True),
        (("arn:aws:iam::123456789012:role/team/*",), True),
        (("arn:aws:iam::999999999999:role/*", "Training"), True),
        (("arn:aws:iam::999999999999:role/*",), False),
        (("*",), True),
    ],
)
def test_a_role_is_allowed_by_its_name_or_its_arn(roles: tuple[str, ...], *, allowed: bool) -> None:
    assert ResubmitPolicy(roles=roles).allows(ARN) is allowed
    assert not ResubmitPolicy(roles=roles).allows(None)
