"""A policy store, in memory and on DynamoDB, and what the tests look at behind it."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from sharewarden.aws.dynamodb import DynamoAuditReader
from sharewarden.aws.policies import KEY
from sharewarden.aws.policy_store import DynamoPolicyStore
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.policy import Policy
from sharewarden.domain.policy_version import put_by_hand
from sharewarden.ports import PolicyStore
from sharewarden.usecases.push_policy import Pushed, PushRequest, push
from sharewarden_tools.memory import MemoryClock, MemoryLedger, MemoryPolicyStore
from sharewarden_tools.template import load_template, tables

from tests.contract.test_ledger import OneAtATime

NOW = 1_789_372_800_000  # 2026-09-14T08:00:00Z
CAP = 999
PAUSED = Policy(paused=True)
HELD = Policy(hold=60_000)


class Kept:
    """A store, and what a test looks at behind it."""

    def __init__(self, store: PolicyStore, dynamodb: Any = None, ledger: MemoryLedger | None = None) -> None:
        self.store = store
        self.dynamodb = dynamodb
        self._ledger = ledger

    def facts(self) -> list[AuditFact]:
        """The changes of the policy that are on record."""
        if self._ledger is not None:
            return list(self._ledger.facts.values())
        rows = self.dynamodb.scan(TableName="Audit")["Items"]
        reader = DynamoAuditReader(self.dynamodb, "Audit")
        assert {row["kind"]["S"] for row in rows} <= {"policy-changed"}
        actors = sorted({row["actor"]["S"] for row in rows})
        found = (
            fact
            for actor in actors
            for fact in reader._indexed("by_actor", "actor", actor, "#at >= :t", ZERO)
        )
        return sorted(found, key=lambda fact: (fact.at, fact.key))

    def by_hand(self, doc: str) -> None:
        """What ``put-item`` does."""
        if self.dynamodb is None:
            assert isinstance(self.store, MemoryPolicyStore)
            newest = max(self.store.kept, default=None)
            self.store.in_force = put_by_hand(doc, newest)
        else:
            self.dynamodb.put_item(TableName="State", Item=KEY | {"doc": {"S": doc}})


ZERO = {":t": {"N": "0"}}


@pytest.fixture(params=["memory", "moto"])
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    if request.param == "memory":
        ledger = MemoryLedger()
        yield Kept(MemoryPolicyStore(ledger), ledger=ledger)
        return
    with mock_aws():
        client: Any = OneAtATime(boto3.client("dynamodb"))
        for table in tables(load_template()):
            client.create_table(**table)
        yield Kept(DynamoPolicyStore(client, "State", "Audit"), client)


def request(
    policy: Policy, author: str = "arn:ana", message: str = "why", text: str = "# mine"
) -> PushRequest:
    return PushRequest(policy=policy, text=text, author=author, message=message)


def pushed(kept: Kept, policy: Policy, at: int = NOW, **members: Any) -> Pushed:
    store = kept.store
    return push(store, MemoryClock(at), request(policy, **members), store.current(), CAP)
