"""One suite for every policy store: in memory and on DynamoDB; and the use case that pushes, over both."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from sharewarden.aws.policies import KEY, DynamoPolicies, version_key
from sharewarden.aws.policy_store import DynamoPolicyStore
from sharewarden.domain.policy import Policy
from sharewarden.domain.policy_version import PolicyVersion, changed_fact
from sharewarden.ports import Conflict, Unavailable
from sharewarden.usecases.bump import Refused
from sharewarden.usecases.push_policy import MAX_BYTES, push
from sharewarden_tools.memory import MemoryClock
from sharewarden_tools.template import load_template, tables

from tests.contract.policy_kit import CAP, HELD, NOW, PAUSED, Kept, kept, pushed, request

__all__ = ["kept"]


@pytest.fixture
def dynamodb() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("dynamodb")
        for table in tables(load_template()):
            client.create_table(**table)
        yield client


def test_what_was_pushed_is_in_force_and_kept_as_written(kept: Kept) -> None:
    first = pushed(kept, PAUSED, text="# why\npaused: true\n").version
    expected = PolicyVersion(
        number=1,
        hash=PAUSED.hash,
        at=NOW,
        author="arn:ana",
        message="why",
        doc='{"paused": true}',
        text="# why\npaused: true\n",
    )
    assert first == kept.store.version(1) == expected
    assert kept.store.current() == expected.model_copy(update={"text": ""})
    second = pushed(kept, HELD, NOW + 5).version
    assert (second.number, second.previous) == (2, 1)
    assert kept.store.version(1) == expected
    assert kept.store.version(3) is None
    assert [entry.number for entry in kept.store.history()] == [2, 1]
    assert all(type(entry).__name__ == "PolicyEntry" for entry in kept.store.history())


def test_a_push_has_exactly_one_record(kept: Kept) -> None:
    pushed(kept, PAUSED)
    pushed(kept, HELD, NOW + 5, author="arn:ben", message="longer")
    told = [
        (fact.kind, fact.actor, fact.before, fact.after, fact.reason, fact.at, fact.policy)
        for fact in kept.facts()
    ]
    assert told == [
        ("policy-changed", "arn:ana", Policy().hash, PAUSED.hash, "why", NOW, PAUSED.hash),
        ("policy-changed", "arn:ben", PAUSED.hash, HELD.hash, "longer", NOW + 5, HELD.hash),
    ]
    assert [fact.figures for fact in kept.facts()] == [
        {"number": 1, "previous": None},
        {"number": 2, "previous": 1},
    ]


def test_pushing_what_is_in_force_changes_nothing(kept: Kept) -> None:
    first = pushed(kept, PAUSED).version
    again = pushed(kept, PAUSED, NOW + 5, author="arn:ben", text="paused: true # in other words")
    assert not again.new
    assert (again.version.number, again.version.author) == (1, "arn:ana")
    assert len(list(kept.store.history())) == len(kept.facts()) == 1
    assert kept.store.version(1) == first


def test_an_earlier_policy_comes_back_under_a_number_of_its_own(kept: Kept) -> None:
    for at, policy in enumerate([PAUSED, HELD, PAUSED]):
        pushed(kept, policy, NOW + at)
    entries = [(entry.number, entry.hash, entry.previous) for entry in kept.store.history()]
    assert entries == [(3, PAUSED.hash, 2), (2, HELD.hash, 1), (1, PAUSED.hash, None)]
    assert len(kept.facts()) == 3


@pytest.mark.parametrize("doc", [PAUSED.model_dump_json(), "{", ""], ids=["loads", "broken", "empty"])
def test_what_was_put_by_hand_is_kept_and_pushed_over(kept: Kept, doc: str) -> None:
    kept.by_hand(doc)
    seen = kept.store.current()
    assert seen is not None
    assert (seen.number, seen.author, seen.doc) == (1, None, doc)
    assert (seen.hash == PAUSED.hash) is (doc == PAUSED.model_dump_json())
    assert [entry.number for entry in kept.store.history()] == [1]
    assert pushed(kept, HELD).version.number == 2
    assert [entry.number for entry in kept.store.history()] == [2, 1]
    assert kept.store.version(1) == seen
    assert [fact.before for fact in kept.facts()] == [seen.hash]


def test_what_is_put_by_hand_later_comes_after_the_versions(kept: Kept) -> None:
    pushed(kept, PAUSED)
    kept.by_hand(HELD.model_dump_json())
    assert [(entry.number, entry.author) for entry in kept.store.history()] == [(2, None), (1, "arn:ana")]
    again = pushed(kept, HELD)
    assert again.new  # the same policy, now with an author
    assert (again.version.number, again.version.previous) == (3, 2)


def test_a_row_without_a_document_can_be_pushed_over(dynamodb: Any) -> None:
    dynamodb.put_item(TableName="State", Item=KEY)
    store = DynamoPolicyStore(dynamodb, "State", "Audit")
    assert push(store, MemoryClock(NOW), request(HELD), store.current(), CAP).version.number == 2


@pytest.mark.parametrize("doc", [{"M": {"paused": {"BOOL": True}}}, {"N": "1"}, {"B": b"{}"}])
def test_a_document_that_is_no_text_can_be_pushed_over(dynamodb: Any, doc: dict[str, Any]) -> None:
    dynamodb.put_item(TableName="State", Item={**KEY, "doc": doc})
    store = DynamoPolicyStore(dynamodb, "State", "Audit")
    assert push(store, MemoryClock(NOW), request(HELD), store.current(), CAP).version.number == 2


def test_a_maimed_version_in_the_history_makes_no_sense(dynamodb: Any) -> None:
    dynamodb.put_item(TableName="State", Item={**version_key(1), "number": {"S": "one"}})
    with pytest.raises(Unavailable, match="makes no sense"):
        list(DynamoPolicyStore(dynamodb, "State", "Audit").history())


@pytest.mark.parametrize("lacks", ["doc", "number", "at"])
def test_a_maimed_row_makes_no_sense(dynamodb: Any, lacks: str) -> None:
    row = {
        "number": {"N": "1"},
        "hash": {"S": "h"},
        "at": {"N": "1"},
        "author": {"S": "a"},
        "doc": {"S": "{}"},
    }
    for key in (KEY, version_key(1)):
        dynamodb.put_item(TableName="State", Item={**key, **{k: v for k, v in row.items() if k != lacks}})
    store = DynamoPolicyStore(dynamodb, "State", "Audit")
    for read in (store.current, lambda: store.version(1)):
        with pytest.raises(Unavailable, match="makes no sense"):
            read()


def test_a_version_never_changes(kept: Kept) -> None:
    first = pushed(kept, PAUSED).version
    other = first.model_copy(update={"author": "arn:eve", "doc": "{}"})
    with pytest.raises(Conflict):
        kept.store.put(
            other, kept.store.current(), changed_fact(other, "x").model_copy(update={"key": "k"}), NOW
        )
    assert kept.store.version(1) == first
    assert len(kept.facts()) == 1


# --- refused ----------------------------------------------------------------------------------------------


def bands(**queues: int) -> Policy:
    return Policy.model_validate(
        {
            "queues": {
                name: {
                    "bands": {
                        "automatic": {"lowest": 0, "highest": 5},
                        "human": {"lowest": 0, "highest": top},
                    }
                }
                for name, top in queues.items()
            }
        }
    )


@pytest.mark.parametrize(
    ("policy", "cap", "named"),
    [
        (bands(a=999), 999, None),
        (bands(a=999), 998, "those of a reach 999"),
        (bands(a=10, b=700, c=800), 500, "those of b reach 700, those of c reach 800"),
        (bands(a=4), 4, "those of a reach 5"),
        (Policy.model_validate({"queues": {"a": {}}}), 500, "those of a reach 999"),
        (Policy(), 0, None),
    ],
    ids=["at the cap", "above", "two of three", "automatic", "defaults", "no queue"],
)
def test_bands_above_the_deployed_cap_are_refused(
    kept: Kept, policy: Policy, cap: int, named: str | None
) -> None:
    if named is None:
        assert push(kept.store, MemoryClock(NOW), request(policy), None, cap).new
        return
    with pytest.raises(Refused, match=named):
        push(kept.store, MemoryClock(NOW), request(policy), None, cap)
    assert (kept.store.current(), kept.facts()) == (None, [])


def test_a_policy_is_bounded_in_bytes_before_dynamodb_refuses_it(kept: Kept) -> None:
    text = "é" * ((MAX_BYTES - len(PAUSED.canonical)) // 2)
    assert push(kept.store, MemoryClock(NOW), request(PAUSED, text=text), None, CAP).new
    with pytest.raises(Refused, match=f"{MAX_BYTES} at most"):
        push(kept.store, MemoryClock(NOW), request(PAUSED, text=f"{text}é"), None, CAP)


# --- the store and who reads it ---------------------------------------------------------------------------


def test_the_functions_read_what_was_pushed_under_the_hash_that_was_stored(dynamodb: Any) -> None:
    rules = [{"rule": "max-instances-per-job", "limit": 4, "grace": "1h", "queues": ["b", "a"]}]
    written = Policy.model_validate(
        {"guardrails": rules, "hold": "45m", "queues": {"ü": {"bumps": "enforce"}}}
    )
    store = DynamoPolicyStore(dynamodb, "State", "Audit")
    version = push(store, MemoryClock(NOW), request(written), None, CAP).version
    read = DynamoPolicies(dynamodb, "State", MemoryClock(NOW)).current()
    assert (read, read.hash, read.canonical) == (written, version.hash, version.doc)
    assert version.load() == written
    assert version.load().hash == version.hash


def test_the_history_goes_on_over_pages(dynamodb: Any) -> None:
    for number in range(1, 12):  # DynamoDB ends a page at 1 MB
        row = {"number": {"N": str(number)}, "hash": {"S": f"h{number}"}, "at": {"N": "1"}}
        more = {"author": {"S": "a"}, "doc": {"S": "x" * 300_000}, "of a newer version": {"S": "x"}}
        dynamodb.put_item(TableName="State", Item=version_key(number) | row | more)
    store = DynamoPolicyStore(dynamodb, "State", "Audit")
    assert [entry.number for entry in store.history()] == list(range(11, 0, -1))


def test_what_dynamodb_refuses_is_unavailable_and_no_conflict() -> None:
    with mock_aws():
        store = DynamoPolicyStore(boto3.client("dynamodb"), "Nowhere", "Audit")
        for call in (store.current, lambda: store.version(1), lambda: list(store.history())):
            with pytest.raises(Unavailable):
                call()
        version = PolicyVersion(number=1, hash="h", at=1, author="a", doc="{}")
        with pytest.raises(Unavailable, match="TransactWriteItems"):
            store.put(version, None, changed_fact(version, ""), NOW)
