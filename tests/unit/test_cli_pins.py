"""``sharewarden checkpoints restore``, ``pins`` and ``unpin``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sharewarden.usecases.bump import Refused
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.cli.pins import Asked, list_pins, restore_checkpoint, unpin_checkpoints

from tests.simulation.samples import FIRST, JOB, SECOND, described
from tests.simulation.world import World, facts_of
from tests.unit.checkpoint_kit import URI, ranks, saved, store, trainer
from tests.unit.pin_kit import content, pin, pins, versioned

ID = "53f51099-d4c3-5e90-ac11-be55089a1763"


def damaged(objects: dict[str, bytes], *, lost: bool = True) -> World:
    """A job whose set was pinned and then deleted."""
    made = versioned(objects)
    made.batch.tell(described(checkpoint_uri=URI))
    pin(made)
    for key in objects if lost else ():
        store(made).delete(URI, key)
    return made


def deployment(made: World) -> Deployment:
    nobody: Any = None
    return Deployment("stack gpu", "123456789012", "us-east-1", "ana", made.runtime, nobody)


def restore(made: World, job: str = f"arn:x/{JOB}", *, as_json: bool = False, **asked: Any) -> int:
    return restore_checkpoint(deployment(made), job, Asked(**asked), as_json=as_json)


@pytest.fixture(autouse=True)
def nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)


def test_it_says_where_and_how_much_before_and_what_a_training_finds_after(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = damaged(ranks(7, 3))
    assert restore(made) == 0
    shown = capsys.readouterr()
    before = shown.err.splitlines()
    assert before[0] == "stack gpu, account 123456789012, us-east-1, as ana"
    assert before[1].startswith(f"bucket ckpt: 6 of 6 files, 621 B, to copy back below {URI} (step 7, saved ")
    assert before[1].endswith("): 6 missing, 0 changed")
    assert shown.out.splitlines() == [
        "step 7: 6 files are back",
        "the newest complete checkpoint is step 7: an attempt that starts goes on from it",
    ]
    assert content(made) == ranks(7, 3)
    assert [fact.actor for fact in facts_of(made.ledger, "checkpoint-restored")] == ["ana"]


def test_what_a_training_writes_while_a_person_is_asked_is_not_overwritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = damaged(saved(7))
    for key, body in saved(9).items():
        made.runtime.checkpoints.put(URI, key, body)
    first = min(saved(7))

    def writes(*_: Any, **__: Any) -> bool:
        made.runtime.checkpoints.put(URI, first, b"of a training that runs")
        return True

    monkeypatch.setattr("sharewarden_tools.cli.pins.confirmed", writes)
    with pytest.raises(Refused, match="changed while you were asked"):
        restore(made)
    assert content(made) == saved(9) | {first: b"of a training that runs"}
    assert (facts_of(made.ledger, "checkpoint-restored"), pins(made)[0].begun) == ([], None)


def test_a_dry_run_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    made = damaged(saved(7))
    assert restore(made, dry_run=True) == 0
    shown = capsys.readouterr()
    assert "2 of 2 files" in shown.err
    assert shown.out.splitlines() == ["step 7: nothing was changed", "there is no complete checkpoint"]
    assert (content(made), facts_of(made.ledger, "checkpoint-restored")) == ({}, [])


def test_where_nothing_is_lost_nothing_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    made = damaged(saved(7), lost=False)
    assert restore(made) == 0
    assert "every file is as it was pinned" in capsys.readouterr().out
    assert facts_of(made.ledger, "checkpoint-restored") == []


def newer(made: World) -> None:
    for key, body in trainer(9).items():
        made.runtime.checkpoints.put(URI, key, body)


def overwritten(made: World) -> None:
    made.runtime.checkpoints.put(URI, min(saved(7)), b"other")


def partial(made: World) -> None:
    """More pages than a look takes."""


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        (newer, "step 9 is complete and newer: a training goes on from that, not from step 7"),
        (
            overwritten,
            "the changed files are overwritten; what they hold now stays as an earlier version only if the "
            "bucket keeps versions still",
        ),
        (partial, "whether there is a newer complete checkpoint is not known"),
    ],
)
def test_it_asks_where_that_may_not_be_what_is_wanted(
    change: Any, doubt: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = damaged(saved(7))
    change(made)
    if change is partial:
        monkeypatch.setattr("sharewarden.usecases.checkpoints.MOST_PAGES", 0)
    before = content(made)
    assert restore(made) == 1
    shown = capsys.readouterr()
    assert doubt in shown.err.splitlines()
    assert "nothing was changed; --yes to restore" in shown.err
    assert content(made) == before
    assert restore(made, yes=True) == 0
    assert saved(7).items() <= content(made).items()
    if change is newer:
        assert "the newest complete checkpoint is step 9" in capsys.readouterr().out


def test_an_older_checkpoint_beside_it_is_no_doubt() -> None:
    made = damaged(saved(7))
    for key, body in trainer(5).items():
        made.runtime.checkpoints.put(URI, key, body)
    assert restore(made) == 0


@pytest.mark.parametrize("dry_run", [True, False])
def test_as_json(dry_run: bool, capsys: pytest.CaptureFixture[str]) -> None:
    made = damaged(saved(7))
    assert restore(made, as_json=True, dry_run=dry_run) == 0
    assert json.loads(capsys.readouterr().out) == {
        "uri": URI,
        "set": "step-000000000007-aaaa",
        "step": 7,
        "files": 2,
        "bytes": sum(map(len, saved(7).values())),
        "missing": 2,
        "restored": not dry_run,
        "newest": None if dry_run else "step-000000000007-aaaa",
    }


def test_the_pin_of_an_earlier_attempt_can_be_picked() -> None:
    made = damaged(saved(7))
    newer(made)
    made.clock.advance(1000)
    pin(made, SECOND)
    assert restore(made) == 0
    assert saved(7).keys().isdisjoint(content(made))
    assert restore(made, attempt=FIRST.rpartition("/")[2], yes=True) == 0
    assert saved(7).items() <= content(made).items()


def test_a_job_that_batch_forgot_is_known_by_its_id() -> None:
    made = versioned(saved(7))
    pin(made)
    (only,) = pins(made)
    made.ledger.commit([only.model_copy(update={"job": ID, "version": 0})], [], 0)
    part = made.ledger.items[("PINPART", f"{only.key}#0")]
    moved = part.model_copy(update={"pin": f"{ID}#{only.digest}", "version": 0})
    made.ledger.commit([moved], [], 0)
    store(made).delete(URI, min(saved(7)))
    assert restore(made, ID) == 0
    assert content(made) == saved(7)


@pytest.mark.parametrize("asked", [{}, {"attempt": "another"}])
def test_nothing_pinned_is_said(asked: dict[str, str]) -> None:
    made = damaged(saved(7)) if asked else versioned({})
    with pytest.raises(BadInput, match="nothing is pinned"):
        restore(made, **asked)


def test_what_s3_refuses_is_a_refusal_with_the_reason() -> None:
    made = damaged(saved(7))
    store(made).denied = "AccessDenied: s3:ListBucketVersions"
    with pytest.raises(Refused, match="s3:ListBucketVersions"):
        restore(made)


def test_pins_are_listed_the_latest_first(capsys: pytest.CaptureFixture[str]) -> None:
    made = damaged(saved(7))
    assert list_pins(deployment(made), f"arn:x/{JOB}", as_json=False) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[:7] == ["2026-09-14T08:00:00Z", "step", "7", "2", "files", "207", "B"]
    assert line.endswith("until 2026-10-14T08:00:00Z  AWSBatch1")
    assert list_pins(deployment(made), f"arn:x/{JOB}", as_json=True) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["save"]["step"], row["attempts"], row["uri"]) == (7, [FIRST], URI)


def test_no_pins_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_pins(deployment(versioned({})), f"arn:x/{JOB}", as_json=False) == 0
    shown = capsys.readouterr()
    assert (shown.out, "nothing is pinned" in shown.err) == ("", True)


def test_unpinning_asks_and_changes_nothing_in_s3(capsys: pytest.CaptureFixture[str]) -> None:
    made = damaged(saved(7), lost=False)
    assert unpin_checkpoints(deployment(made), f"arn:x/{JOB}", None, yes=False) == 1
    assert len(facts_of(made.ledger, "checkpoint-unpinned")) == 0
    assert unpin_checkpoints(deployment(made), f"arn:x/{JOB}", None, yes=True) == 0
    assert "1 sets are no longer pinned" in capsys.readouterr().out
    assert [fact.actor for fact in facts_of(made.ledger, "checkpoint-unpinned")] == ["ana"]
    assert content(made) == saved(7)
    with pytest.raises(BadInput, match="nothing is pinned"):
        restore(made)
