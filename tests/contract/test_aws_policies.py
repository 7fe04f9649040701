"""The policy in force, from the State table on moto."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from sharewarden.aws.policies import KEY, STEPS_BACK, DynamoPolicies, version_key
from sharewarden.aws.policy_store import DynamoPolicyStore
from sharewarden.domain import rules
from sharewarden.domain.policy import Policy
from sharewarden.ports import Unavailable
from sharewarden.usecases.push_policy import PushRequest
from sharewarden.usecases.push_policy import push as push_version
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
def alarms() -> list[str]:
    return []


@pytest.fixture
def policies(dynamodb: Any, clock: MemoryClock, alarms: list[str]) -> DynamoPolicies:
    return DynamoPolicies(dynamodb, "State", clock, lambda: alarms.append("unloadable"))


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


# --- versions: the last good one is found again -----------------------------------------------------------

BROKEN = '{"of_a_newer_version": 1}'


def versions(dynamodb: Any, *docs: str) -> None:
    """Versions 1, 2, ... with these documents, the last one in force."""
    for number, doc in enumerate(docs, 1):
        row = {"number": {"N": str(number)}, "hash": {"S": "h"}, "author": {"S": "a"}, "doc": {"S": doc}}
        if number > 1:
            row["previous"] = {"N": str(number - 1)}
        for key in (KEY, version_key(number)):
            dynamodb.put_item(TableName="State", Item={**key, **row})


LONG = Policy(hold=1)


@pytest.mark.parametrize(
    ("docs", "expected"),
    [
        ((PAUSED.canonical, LONG.canonical), LONG),
        ((PAUSED.canonical, BROKEN), PAUSED),
        ((PAUSED.canonical, LONG.canonical, BROKEN, "{", ""), LONG),
        ((BROKEN, BROKEN), Policy()),
        ((PAUSED.canonical, *[BROKEN] * STEPS_BACK), PAUSED),
        ((PAUSED.canonical, *[BROKEN] * (STEPS_BACK + 1)), Policy()),
    ],
    ids=["loads", "one back", "three back", "none loads", "as far as is looked", "farther"],
)
def test_a_fresh_process_finds_the_last_good_one(
    dynamodb: Any, policies: DynamoPolicies, alarms: list[str], docs: tuple[str, ...], expected: Policy
) -> None:
    versions(dynamodb, *docs)
    assert policies.current() == expected
    assert policies.current().hash == expected.hash
    assert len(alarms) == (docs[-1] != expected.canonical)


def test_a_gap_in_the_versions_ends_the_search(dynamodb: Any, policies: DynamoPolicies) -> None:
    versions(dynamodb, PAUSED.canonical, "{", BROKEN)
    dynamodb.delete_item(TableName="State", Key=version_key(2))
    assert policies.current() == Policy()


@pytest.mark.parametrize("previous", [{"S": "1"}, {"N": "1.5"}, {"M": {}}])
def test_a_maimed_number_ends_the_search(
    dynamodb: Any, policies: DynamoPolicies, previous: dict[str, Any]
) -> None:
    dynamodb.put_item(TableName="State", Item={**KEY, "doc": {"S": BROKEN}, "previous": previous})
    assert policies.current() == Policy()


def test_a_version_that_cannot_be_read_is_not_taken_for_none(dynamodb: Any, policies: DynamoPolicies) -> None:
    versions(dynamodb, PAUSED.canonical, BROKEN)
    with Stubber(dynamodb) as stub:
        stub.add_response("get_item", {"Item": {"doc": {"S": BROKEN}, "previous": {"N": "1"}}})
        stub.add_client_error("get_item", "ThrottlingException", "slow down")
        with pytest.raises(Unavailable):
            policies.current()
    assert policies.current() == PAUSED


def test_it_is_loud_once_a_minute_until_one_loads(
    dynamodb: Any,
    clock: MemoryClock,
    policies: DynamoPolicies,
    alarms: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    versions(dynamodb, PAUSED.canonical, BROKEN)
    for expected in (1, 2, 3):
        for _ in range(3):
            assert policies.current() == PAUSED
        assert len(alarms) == len(caplog.records) == expected
        clock.advance(MINUTE)
    assert f"policy {PAUSED.hash} stays in force" in caplog.text
    versions(dynamodb, LONG.canonical)
    assert policies.current() == LONG
    assert len(alarms) == 3


def test_a_process_that_has_seen_a_good_one_does_not_look_back(
    dynamodb: Any, clock: MemoryClock, policies: DynamoPolicies
) -> None:
    """What was good to it stays, whatever lies between: no look at versions is paid each minute."""
    versions(dynamodb, PAUSED.canonical)
    assert policies.current() == PAUSED
    versions(dynamodb, LONG.canonical, BROKEN)
    clock.advance(MINUTE)
    assert policies.current() == PAUSED


@pytest.mark.parametrize(
    ("doc", "pauses"),
    [
        ('{"paused": true, "new": 1}', True),
        ('{"paused": false, "new": 1}', False),
        ('{"paused": "yes", "new": 1}', False),
        ('{"new": {"paused": true}}', False),
        ('["paused"]', False),
        ("paused: true", False),
        ("[" * 100_000, False),
    ],
)
@pytest.mark.parametrize("fresh", [True, False])
def test_the_kill_switch_is_heard_in_a_document_that_does_not_load(
    dynamodb: Any, clock: MemoryClock, policies: DynamoPolicies, doc: str, *, pauses: bool, fresh: bool
) -> None:
    versions(dynamodb, LONG.canonical)
    if not fresh:
        policies.current()
        clock.advance(MINUTE)
    versions(dynamodb, LONG.canonical, doc)
    expected = Policy(hold=1, paused=pauses)
    assert policies.current() == expected
    assert policies.current().hash == expected.hash
    versions(dynamodb, LONG.canonical, BROKEN)
    clock.advance(MINUTE)
    assert policies.current() == LONG  # and let go again


ENTRY = Policy.model_validate({"guardrails": [{"rule": "max-instances-per-job", "limit": 4}]})


@pytest.mark.parametrize("missing", ["the rule", "an option", "its library"])
def test_a_rule_that_this_code_lacks_does_not_load(
    dynamodb: Any, policies: DynamoPolicies, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """As old code sees what the command of a newer version has pushed."""
    versions(
        dynamodb,
        PAUSED.canonical,
        ENTRY.canonical.replace('"limit"', '"since_2"' if missing == "an option" else '"limit"'),
    )
    if missing == "the rule":
        monkeypatch.setattr(rules, "names", lambda: ("required-tags",))
    if missing == "its library":
        monkeypatch.setattr(rules, "import_module", failing)
    assert policies.current() == PAUSED


def failing(name: str, _package: str) -> Any:
    raise ImportError(f"No module named {name!r}")


def test_what_is_at_its_default_is_not_in_the_document() -> None:
    """So old code loads whatever uses nothing new."""
    assert Policy().canonical == "{}"
    spelled_out = Policy.model_validate_json(ENTRY.model_dump_json())
    assert spelled_out.canonical == '{"guardrails": [{"limit": 4, "rule": "max-instances-per-job"}]}'


def test_each_reading_names_the_policy_that_was_in_force_then(
    dynamodb: Any, clock: MemoryClock, policies: DynamoPolicies
) -> None:
    """A push in the middle of a batch: what was decided before it names the old hash, the rest the new."""
    store = DynamoPolicyStore(dynamodb, "State", "Audit")
    hashes = []
    for policy in (PAUSED, LONG, ENTRY):
        asked = PushRequest(policy=policy, text="", author="a")
        stored = push_version(store, clock, asked, store.current(), 999).version.hash
        before = policies.current()
        clock.advance(MINUTE)
        hashes.append((before.hash, policies.current().hash, stored))
    assert hashes == [
        (PAUSED.hash, PAUSED.hash, PAUSED.hash),
        (PAUSED.hash, LONG.hash, LONG.hash),
        (LONG.hash, ENTRY.hash, ENTRY.hash),
    ]
