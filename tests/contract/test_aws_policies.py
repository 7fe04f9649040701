"""The policy in force, from the State table on moto."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from sharewarden.aws.policies import KEY, DynamoPolicies
from sharewarden.domain.policy import Policy
from sharewarden.ports import Unavailable
from sharewarden_tools.memory import MemoryClock
from sharewarden_tools.template import load_template, tables

PAUSED = Policy(paused=True)
MINUTE = 60_000


@pytest.fixture
def dynamodb() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("dynamodb")
        for table in tables(load_template()):
            client.create_table(**table)
        yield client


@pytest.fixture
def clock() -> MemoryClock:
    return MemoryClock(1_789_372_800_000)


@pytest.fixture
def policies(dynamodb: Any, clock: MemoryClock) -> DynamoPolicies:
    return DynamoPolicies(dynamodb, "State", clock)


def push(dynamodb: Any, doc: str) -> None:
    dynamodb.put_item(TableName="State", Item=KEY | {"doc": {"S": doc}})


def test_safe_defaults_until_one_is_pushed(policies: DynamoPolicies) -> None:
    assert policies.current() == Policy()


@pytest.mark.parametrize(("age", "expected"), [(0, Policy()), (MINUTE - 1, Policy()), (MINUTE, PAUSED)])
def test_a_new_policy_holds_within_a_minute(
    dynamodb: Any, clock: MemoryClock, policies: DynamoPolicies, age: int, expected: Policy
) -> None:
    policies.current()
    push(dynamodb, PAUSED.model_dump_json())
    clock.advance(age)
    assert policies.current() == expected


@pytest.mark.parametrize("doc", ["", "{", '{"pausd": true}', '{"blast_radius": 0}'])
@pytest.mark.parametrize("before", [None, PAUSED], ids=["at first", "after a good one"])
def test_one_that_does_not_load_changes_nothing_but_the_log(
    dynamodb: Any,
    clock: MemoryClock,
    policies: DynamoPolicies,
    caplog: pytest.LogCaptureFixture,
    doc: str,
    before: Policy | None,
) -> None:
    if before is not None:
        push(dynamodb, before.model_dump_json())
        policies.current()
    push(dynamodb, doc)
    clock.advance(MINUTE)
    assert policies.current() == (before or Policy())
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_row_without_a_document_does_not_load(
    dynamodb: Any, policies: DynamoPolicies, caplog: pytest.LogCaptureFixture
) -> None:
    dynamodb.put_item(TableName="State", Item=KEY)
    assert policies.current() == Policy()
    assert "DOES NOT LOAD" in caplog.text


def test_an_old_policy_is_not_trusted_when_the_table_cannot_be_read(
    dynamodb: Any, clock: MemoryClock, policies: DynamoPolicies
) -> None:
    policies.current()
    clock.advance(MINUTE)
    with Stubber(dynamodb) as stub:
        stub.add_client_error("get_item", "ThrottlingException", "slow down")
        with pytest.raises(Unavailable, match=r"^GetItem: ThrottlingException"):
            policies.current()
    push(dynamodb, PAUSED.model_dump_json())
    assert policies.current() == PAUSED


def test_a_clock_that_is_set_back_does_not_keep_an_old_policy_in_force(
    dynamodb: Any, clock: MemoryClock, policies: DynamoPolicies
) -> None:
    policies.current()
    push(dynamodb, PAUSED.model_dump_json())
    clock.advance(-24 * 60 * MINUTE)
    assert policies.current() == PAUSED
