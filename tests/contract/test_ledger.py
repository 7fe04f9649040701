"""One suite for every ledger: in memory, on moto, and on DynamoDB Local where DYNAMODB_ENDPOINT names it."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier, Lock
from typing import Any, NamedTuple

import boto3
import pytest
from moto import mock_aws
from sharewarden.aws.dynamodb import DynamoAuditReader, DynamoLedger
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.audit import AuditFact, AuditRecord
from sharewarden.domain.foreign import ForeignJob
from sharewarden.domain.observation import JobObservation, ShareDescription
from sharewarden.domain.priority import Boost, PriorityLedger, Sent, Suspect, Wish
from sharewarden.domain.record import End, JobRecord, Snapshot, Transition
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import DAY, Stored
from sharewarden.domain.sweeping import SweepState
from sharewarden.domain.training import TrainingRecord, TrainingStep
from sharewarden.domain.untraced import UntracedJob
from sharewarden.ports import MAX_ACTIONS, AuditReader, Conflict, Ledger
from sharewarden_tools.memory import MemoryLedger
from sharewarden_tools.template import load_template, tables

NOW = 1_789_372_800_123
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
OTHER_QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/other"
SHARE = f"{QUEUE}/quota-share/team-vision"
TRAINING_JOB = "arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatchvision-1"

ENDPOINT = os.environ.get("DYNAMODB_ENDPOINT")
BACKENDS = ("memory", "moto", *(["dynamodb-local"] if ENDPOINT else []))
_serial = count()


class Store(NamedTuple):
    ledger: Ledger
    audit: AuditReader


class OneAtATime:
    """moto's transactions are not atomic between threads, DynamoDB's are: moto answers one call at a time."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            with self._lock:
                return getattr(self._client, name)(**request)

        return call


def on_dynamodb(client: Any) -> Store:
    suffix = f"{os.getpid()}-{next(_serial)}"
    names = {}
    for table in tables(load_template()):
        names[table["TableName"]] = f"{table['TableName']}-{suffix}"
        client.create_table(**table | {"TableName": names[table["TableName"]]})
    return Store(
        DynamoLedger(client, names["State"], names["Audit"]), DynamoAuditReader(client, names["Audit"])
    )


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        memory = MemoryLedger()
        yield Store(memory, memory)
    elif request.param == "dynamodb-local":
        yield on_dynamodb(boto3.client("dynamodb", endpoint_url=ENDPOINT))
    else:
        with mock_aws():
            yield on_dynamodb(OneAtATime(boto3.client("dynamodb")))


def job(key: str = "job-1", **members: Any) -> JobRecord:
    base = {"job": key, "arn": f"arn:aws:batch:::service-job/{key}", "name": key, "queue": QUEUE}
    return JobRecord(**base | {"created_at": NOW} | members)


def fact(key: str = "job-ended#job-1", **members: Any) -> AuditFact:
    return AuditFact(**{"key": key, "kind": "job-ended", "at": NOW, "job": "job-1"} | members)


def share_fact(at: int, **members: Any) -> AuditFact:
    return fact(f"fact at {at}", **{"at": at, "queue": QUEUE, "share": "team-vision"} | members)


def recorded(fact: AuditFact, at: int = NOW) -> AuditRecord:
    return AuditRecord(**fact.model_dump(), recorded_at=at)


FULL_JOB = job(
    share="team-vision",
    tags=(("empty", ""), ("team", "Größe 模型 🚀")),
    instance_type="ml.g6e.12xlarge",
    instance_count=2,
    checkpoint_uri="s3://ckpt/a b/",
    role="arn:aws:iam::123456789012:role/T",
    preemption_retries=0,
    timeline=(
        Transition(at=NOW, what="status", status="RUNNING", attempt=TRAINING_JOB, reason='"quoted"\n\t\\'),
        Transition(at=NOW, what="preemption-started"),
    ),
    attempts=(Attempt(training_job=TRAINING_JOB, started_at=1, stopped_at=2, preempted=True, audited=True),),
    preempted_count=10**12,
    gaps=1,
    snapshot=Snapshot(read_at=NOW, status="RUNNABLE", attempt=TRAINING_JOB, dispatched_at=NOW),
    priority=PriorityLedger(
        base=200,
        boosts=(Boost(id="b1", kind="human", amount=-5, by="U1", reason="", since=1, end="expired"),),
        version=7,
        wish=Wish(version=7, value=300, actor="U1", reason="r", created_at=1, not_after=2),
        sent=Sent(version=6, before=200, value=250, actor="U1", reason="r", at=1),
        confirmed=200,
        suspect=Suspect(value=9999, first_seen=3),
    ),
    end=End(status="FAILED", at=NOW, reason="x" * 10_000),
    end_audited=True,
    missing_since=NOW,
    closed_at=NOW,
)
DESCRIPTION = ShareDescription(
    arn=SHARE,
    name="team-vision",
    queue=QUEUE,
    limits=(("ml.g5.xlarge", 4),),
    strategy="LEND",
    borrow_limit=-1,
)
ITEMS = {
    "full job": FULL_JOB,
    "bare job": job(classic=True),
    "share": ShareRecord(arn=SHARE, queue=QUEUE, description=DESCRIPTION, told=True),
    "unknown share": ShareRecord(arn=SHARE, queue=QUEUE),
    "job that nobody can place": UntracedJob(
        job="job-1",
        events=(JobObservation(job="job-1", arn="a", at=NOW, what="preemption-started"),),
        heard_at=NOW,
    ),
    "training job": TrainingRecord(
        training_job=TRAINING_JOB, steps=(TrainingStep(at=NOW, status="Stopped", failure_reason=""),)
    ),
    "foreign job": ForeignJob(job="job-1", seen_at=NOW),
    "sweep": SweepState(holder="me", until=NOW, adopted=("a", "b")),
}

FACTS = {
    "bare": fact(),
    "full": fact(
        queue=QUEUE,
        share="team-vision",
        team="Größe 模型 🚀",
        job_name="vision",
        lineage="l-1",
        actor="arn:aws:iam::123456789012:user/ada",
        mode="enforce",
        before="100",
        after="200",
        policy="0123456789abcdef",
    ),
    "empty texts": fact(before="", after="", reason="", team="", actor=""),
    "figures": fact(
        figures={"big": 2**70, "float": 0.1, "small": 1e-300, "none": None, "yes": True, "list": [{"a": []}]},
        inputs={"": "", "text": "\u2028 € 🚀"},
    ),
}


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
def test_what_was_committed_is_loaded(store: Store, item: Stored) -> None:
    store.ledger.commit([item], [], NOW)
    loaded = store.ledger.load(type(item), item.key)
    assert loaded == item.model_copy(update={"version": 1})


@pytest.mark.parametrize("written", FACTS.values(), ids=FACTS)
def test_a_fact_is_read_as_it_was_written(store: Store, written: AuditFact) -> None:
    store.ledger.commit([], [written], NOW + 1)
    assert list(store.audit.by_job("job-1", 0)) == [recorded(written, NOW + 1)]


def test_what_was_never_written_is_none(store: Store) -> None:
    assert store.ledger.load(JobRecord, "job-1") is None


def test_kinds_with_the_same_key_are_apart(store: Store) -> None:
    store.ledger.commit([ForeignJob(job="job-1", seen_at=NOW)], [], NOW)
    assert store.ledger.load(JobRecord, "job-1") is None


def test_each_commit_raises_the_version(store: Store) -> None:
    for version, facts in enumerate([[], [fact("a")], [], [fact("b")]]):
        store.ledger.commit([job(version=version, gaps=version)], facts, NOW)
    assert store.ledger.load(JobRecord, "job-1") == job(version=4, gaps=3)


@pytest.mark.parametrize("facts", [[], [fact()]], ids=["alone", "with a fact"])
@pytest.mark.parametrize("read", [0, 1, 3], ids=["never read", "outdated", "not yet written"])
def test_a_version_that_is_not_the_stored_one_conflicts(
    store: Store, read: int, facts: list[AuditFact]
) -> None:
    store.ledger.commit([job()], [], NOW)
    store.ledger.commit([job(version=1)], [], NOW)
    with pytest.raises(Conflict):
        store.ledger.commit([job(version=read, gaps=5)], facts, NOW)
    assert store.ledger.load(JobRecord, "job-1") == job(version=2)
    assert list(store.audit.by_job("job-1", 0)) == []


def test_a_version_of_what_is_not_there_conflicts(store: Store) -> None:
    with pytest.raises(Conflict):
        store.ledger.commit([job(version=1)], [], NOW)


def test_a_conflict_on_one_item_writes_nothing(store: Store) -> None:
    store.ledger.commit([job("old")], [], NOW)
    with pytest.raises(Conflict):
        store.ledger.commit([job("new"), job("old")], [fact()], NOW)
    assert store.ledger.load(JobRecord, "new") is None
    assert list(store.audit.by_job("job-1", 0)) == []


@pytest.mark.parametrize("items", [[], [job()], [job(), job("job-2")]], ids=["alone", "one item", "items"])
def test_a_fact_on_record_blocks_nothing_and_stays(store: Store, items: list[JobRecord]) -> None:
    first, second, new = fact("a", reason="first"), fact("a", reason="second"), fact("b", at=NOW + 1)
    store.ledger.commit([], [first], NOW)
    store.ledger.commit(items, [second, new], NOW + 5)
    assert list(store.audit.by_job("job-1", 0)) == [recorded(first), recorded(new, NOW + 5)]
    assert all(store.ledger.load(JobRecord, item.key) for item in items)


def test_items_are_committed_when_all_their_facts_are_on_record(store: Store) -> None:
    store.ledger.commit([], [fact("a"), fact("b")], NOW)
    store.ledger.commit([job()], [fact("a"), fact("b")], NOW)
    assert store.ledger.load(JobRecord, "job-1") is not None


@pytest.mark.parametrize("items", [[], [job()]], ids=["alone", "with an item"])
def test_of_two_facts_with_one_key_the_first_stands(store: Store, items: list[JobRecord]) -> None:
    store.ledger.commit(items, [fact(reason="first"), fact(reason="second")], NOW)
    assert [record.reason for record in store.audit.by_job("job-1", 0)] == ["first"]


@pytest.mark.parametrize("with_fact", [False, True], ids=["alone", "with a fact"])
def test_of_commits_at_once_exactly_one_wins(store: Store, with_fact: bool) -> None:
    writers = 4
    barrier = Barrier(writers)

    def write(writer: int) -> bool:
        facts = [fact(reason=str(writer))] if with_fact else []
        barrier.wait()
        try:
            store.ledger.commit([job(gaps=writer)], facts, NOW)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(writers) as pool:
        won = [writer for writer, wins in enumerate(pool.map(write, range(writers))) if wins]
    stored = store.ledger.load(JobRecord, "job-1")
    assert stored is not None
    assert (won, stored.version) == ([stored.gaps], 1)
    assert [record.reason for record in store.audit.by_job("job-1", 0)] == [str(w) for w in won if with_fact]


def test_open_items_are_found_by_kind_and_queue_until_they_close(store: Store) -> None:
    share = ShareRecord(arn=SHARE, queue=QUEUE)
    store.ledger.commit([job("a"), job("b"), job("c", queue=OTHER_QUEUE), share], [], NOW)
    assert {item.key for item in store.ledger.open_items(JobRecord, QUEUE)} == {"a", "b"}
    assert [item.key for item in store.ledger.open_items(ShareRecord, QUEUE)] == [SHARE]

    store.ledger.commit([job("a", version=1, closed_at=NOW)], [], NOW)
    assert list(store.ledger.open_items(JobRecord, QUEUE)) == [job("b", version=1)]


def test_open_items_go_on_over_pages(store: Store) -> None:
    for number in range(5):  # DynamoDB ends a page at 1 MB
        store.ledger.commit([job(f"job-{number}", name="x" * 300_000)], [], NOW)
    assert len(list(store.ledger.open_items(JobRecord, QUEUE))) == 5


@pytest.mark.parametrize(("items", "facts"), [(1, MAX_ACTIONS), (0, MAX_ACTIONS + 1), (MAX_ACTIONS + 1, 0)])
def test_a_commit_that_is_too_long_is_refused(store: Store, items: int, facts: int) -> None:
    with pytest.raises(ValueError, match=str(MAX_ACTIONS)):
        store.ledger.commit(
            [job(f"job-{number}") for number in range(items)],
            [fact(f"fact-{number}") for number in range(facts)],
            NOW,
        )


def test_the_longest_commit(store: Store) -> None:
    store.ledger.commit([job()], [fact(f"fact-{number}") for number in range(MAX_ACTIONS - 1)], NOW)
    assert len(list(store.audit.by_job("job-1", 0))) == MAX_ACTIONS - 1


def test_the_records_of_a_job_since_a_time_oldest_first(store: Store) -> None:
    for at in (NOW + 2, NOW, NOW + 9, NOW + 1):
        store.ledger.commit([], [fact(f"fact at {at}", at=at)], NOW)
    store.ledger.commit([], [fact("other", job="job-2")], NOW)
    assert [record.at - NOW for record in store.audit.by_job("job-1", NOW + 1)] == [1, 2, 9]


def test_records_without_a_share_are_found_under_their_queue_alone(store: Store) -> None:
    of_queue = [share_fact(NOW + 1, share=None), share_fact(NOW + 2, share="")]
    others = [share_fact(NOW + 3), share_fact(NOW + 4, share=None, queue=None)]
    store.ledger.commit([], [*of_queue, *others, share_fact(NOW + 5, share=None, queue=OTHER_QUEUE)], NOW)
    assert [record.at for record in store.audit.by_share(QUEUE, "", NOW, NOW + 9)] == [NOW + 1, NOW + 2]
    assert [record.at for record in store.audit.by_share(QUEUE, "team-vision", NOW, NOW + 9)] == [NOW + 3]


def test_the_records_of_a_share_across_days_oldest_first(store: Store) -> None:
    midnight = NOW - NOW % DAY
    times = [midnight + DAY, midnight - 1, midnight, midnight + 3 * DAY, midnight - DAY, midnight + DAY - 1]
    for at in times:
        store.ledger.commit([], [share_fact(at)], NOW)
    found = store.audit.by_share(QUEUE, "team-vision", midnight - 1, midnight + DAY)
    assert [record.at - midnight for record in found] == [-1, 0, DAY - 1, DAY]


def test_the_records_of_a_share_are_those_of_no_other(store: Store) -> None:
    others = [
        share_fact(NOW + 1, queue=OTHER_QUEUE),
        share_fact(NOW + 2, share="team"),
        share_fact(NOW + 3, share=None),
    ]
    store.ledger.commit([], [share_fact(NOW), *others], NOW)
    assert [record.at for record in store.audit.by_share(QUEUE, "team-vision", NOW, NOW + 5)] == [NOW]


def test_the_records_of_a_share_go_on_over_pages(store: Store) -> None:
    times = [NOW + number for number in range(5)]
    for at in times:
        store.ledger.commit([], [share_fact(at, reason="x" * 300_000)], NOW)
    assert [record.at for record in store.audit.by_share(QUEUE, "team-vision", NOW, NOW + 9)] == times


@pytest.mark.parametrize(
    "text", ["x" * 420_000, "\N{HIRAGANA LETTER A}" * 140_000], ids=["ASCII", "three bytes"]
)
def test_nothing_of_a_commit_is_written_when_a_part_is_too_big(store: Store, text: str) -> None:
    state = SweepState(adopted=(text,))
    with pytest.raises(ValueError, match="bytes"):
        store.ledger.commit([job(), state], [], NOW)
    with pytest.raises(ValueError, match="bytes"):
        store.ledger.commit([job()], [fact(reason=text)], NOW)
    assert store.ledger.load(JobRecord, "job-1") is None
    assert store.ledger.load(SweepState, "all") is None
