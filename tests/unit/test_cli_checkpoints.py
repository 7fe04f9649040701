"""``sharewarden checkpoints list``."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import Transition, new_record
from sharewarden.domain.stored import DAY, HOUR, MINUTE
from sharewarden.usecases import checkpoints
from sharewarden_tools.cli.checkpoints import list_checkpoints, size_text
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.output import BadInput

from tests.simulation.world import NOW, QUEUE, World
from tests.unit.checkpoint_kit import URI, place, saved, store, trainer

JOB = "53f51099-d4c3-5e90-ac11-be55089a1763"


def described(uri: str | None = URI) -> JobDescription:
    return JobDescription(
        job=JOB,
        arn=f"arn:aws:batch:us-east-1:123456789012:service-job/{JOB}",
        read_at=NOW,
        name="train",
        queue=QUEUE,
        status="RUNNING",
        created_at=NOW,
        checkpoint_uri=uri,
    )


def job_with(objects: Mapping[str, bytes], policy: Policy | None = None) -> World:
    made = place(objects, policy, at=NOW - 5 * MINUTE)
    store(made)
    made.batch.tell(described())
    return made


def run(made: World, *, as_json: bool = False) -> int:
    nobody: Any = None
    return list_checkpoints(Deployment("here", "1", "r", "ana", made.runtime, nobody), JOB, as_json=as_json)


MIXED = (
    saved(1200, at=NOW - 6 * MINUTE, body=b"m" * 5)
    | {"step-000000001300-cccc/model.pt": b"m" * 3 * 1024 * 1024}
    | saved(1100, at=NOW - 16 * MINUTE)
    | {"notes.txt": b"1"}
)


def test_sets_are_listed_newest_first_with_what_they_lack(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(job_with(MIXED)) == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines()]
    assert shown.out.splitlines()[0] == f"{URI}: newest complete checkpoint: step 1200, 6 min ago"
    assert lines[1][:7] == ["2026-09-14T07:55:00Z", "1300", "3.0", "MiB", "manifest", "incomplete",
                            "step-000000001300-cccc:"]  # fmt: skip
    assert lines[1][7:] == ["no", "_SAVED.json"]
    assert lines[2][:3] == ["*", "2026-09-14T07:54:00Z", "1200"]
    assert lines[2][-2:] == ["complete", "step-000000001200-aaaa"]
    assert lines[3][0] == "2026-09-14T07:44:00Z"
    assert "1 of 6 objects belong to no layout" in shown.err


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(job_with(MIXED), as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["uri"], document["newest"]["step"], document["partial"]) == (URI, 1200, False)
    assert [(row["step"], row["state"]) for row in document["sets"]] == [
        (1300, "incomplete"),
        (1200, "complete"),
        (1100, "complete"),
    ]


def preempted_before(made: World, *, share: str = "background") -> World:
    """Two jobs of the share: they ran for eight hours in all, and were preempted twice."""
    began = NOW - DAY
    for number, hours in enumerate((3, 5)):
        attempt = f"arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatch{number}"
        ran = Transition(at=began, what="status", status="RUNNING", attempt=attempt)
        stopped = Attempt(training_job=attempt, stopped_at=began + hours * HOUR, preempted=True)
        job = new_record(described().model_copy(update={"job": f"j{number}", "created_at": 0}))
        update = {"share": share, "timeline": (ran,), "attempts": (stopped,)}
        made.ledger.commit([job.model_copy(update=update)], [], NOW)
    made.ledger.commit([new_record(described()).model_copy(update={"share": "background"})], [], NOW)
    return made


def test_how_often_to_save_is_advised_where_both_figures_are_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """sqrt(2 x 1.2 s x 4 h) is 185.9 s (Young, 1974)."""
    assert run(preempted_before(job_with(saved(1200)))) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == (
        "saving every 3 min 6 s would cost least: a save takes 1 s, and jobs of this share run 4 h between"
        " preemptions (2 known); it saves every 10 min"
    )
    assert run(preempted_before(job_with(saved(1200))), as_json=True) == 0
    advice = json.loads(capsys.readouterr().out)["advice"]
    assert advice == {
        "interval": 185_903,
        "took": 1200,
        "between_preemptions": 4 * HOUR,
        "preemptions": 2,
    }


@pytest.mark.parametrize(
    "made",
    [
        preempted_before(job_with(saved(1200)), share="medium"),
        preempted_before(job_with(trainer(400))),
        preempted_before(job_with({})),
        job_with(saved(1200)),
    ],
)
def test_where_either_is_not_known_nothing_is_advised(
    made: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(made) == 0
    assert "would cost least" not in capsys.readouterr().out


def test_none_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(job_with({})) == 0
    assert capsys.readouterr().out == f"{URI}: no complete checkpoint\n"


@pytest.mark.parametrize("fault", ["down", "denied"])
@pytest.mark.parametrize("as_json", [True, False])
def test_law_02_s3_that_cannot_be_asked_is_unknown(
    fault: str, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    made = job_with(MIXED)
    setattr(store(made), fault, "because")
    assert run(made, as_json=as_json) == 3
    shown = capsys.readouterr()
    assert "what is saved there is unknown: because" in shown.err
    assert "no complete checkpoint" not in shown.out
    assert not as_json or json.loads(shown.out)["newest"] == "unknown"


@pytest.mark.parametrize("as_json", [True, False])
def test_law_02_a_look_that_ended_early_is_unknown(
    as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "MOST_PAGES", 0)
    assert run(job_with(MIXED), as_json=as_json) == 3
    shown = capsys.readouterr().out
    assert '"newest": "unknown"' in shown if as_json else "unknown whether" in shown


def test_the_patterns_of_the_policy_count(capsys: pytest.CaptureFixture[str]) -> None:
    policy = Policy.model_validate({"checkpoints": {"patterns": ["run-{step}.npz"]}})
    run(job_with({"run-7.npz": b"1"}, policy))
    assert "step 7, 5 min ago" in capsys.readouterr().out


def test_a_job_that_batch_forgot_is_known_by_its_record(capsys: pytest.CaptureFixture[str]) -> None:
    made = job_with(trainer(5))
    made.batch.descriptions.clear()
    with pytest.raises(BadInput, match="knows this job"):
        run(made)
    record = new_record(described()).model_copy(update={"checkpoint_uri": URI})
    made.ledger.commit([record], [], NOW)
    assert run(made) == 0
    assert "step 5" in capsys.readouterr().out


def test_a_job_that_saves_nowhere_is_told_so() -> None:
    made = job_with({})
    made.batch.tell(described(uri=None))
    with pytest.raises(BadInput, match="CheckpointConfig"):
        run(made)


def test_names_stay_on_their_line(capsys: pytest.CaptureFixture[str]) -> None:
    run(job_with({"a\n\x1b[31m.pt": b"1"}))
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536 * 1024, "1.5 MiB"),
        (80 * 2**30, "80.0 GiB"),
        (3 * 2**50, "3072.0 TiB"),
    ],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert size_text(size) == text
