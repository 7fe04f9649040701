"""`sharewarden demo`: the story comes out as documented, and the command notices when it does not."""

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Any

import pytest
from sharewarden.ports import Runtime
from sharewarden_tools.cli import main
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.lab.scheduler import _Pass
from sharewarden_tools.local.functions import Handler
from sharewarden_tools.local.stack import Setup, local_stack
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import SHARES, START, Check, Share, ThreeTeams

TIMED = re.compile(r"^(\d\d:\d\d:\d\d)  (\S+) +(.*)$", re.MULTILINE)


def demo(*args: str) -> tuple[int, str]:
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit) as ended:
        main(["demo", *args])
    return int(str(ended.value.code)), out.getvalue()


@pytest.fixture(scope="module")
def plain() -> tuple[int, str]:
    return demo()


@pytest.fixture(scope="module")
def machine() -> dict[str, Any]:
    code, text = demo("--json")
    return {"code": code, **json.loads(text)}


def test_all_checks_hold(plain: tuple[int, str]) -> None:
    code, text = plain
    assert code == 0
    assert "FAIL" not in text
    assert re.search(r"^(\d+) of \1 checks hold", text, re.MULTILINE)


def test_piped_output_is_plain(plain: tuple[int, str]) -> None:
    assert "\x1b" not in plain[1]
    assert "\r" not in plain[1]


def test_the_timeline_says_who_was_preempted_and_why(plain: tuple[int, str]) -> None:
    text = plain[1]
    assert "background-2  RUNNING -> preempted (cross-share) by the return of lent capacity" in text
    assert (
        "background-1  RUNNING -> preempted (in-share) by a higher priority in its own share [assumed]"
        in text
    )


def test_a_cause_stands_before_what_came_of_it(plain: tuple[int, str]) -> None:
    """CloudTrail brings the call seconds after the preemption that it led to."""
    lines = TIMED.findall(plain[1].partition("audit trail of")[0])
    assert [at for at, _, _ in lines] == sorted(at for at, _, _ in lines)
    told = [what for _, _, what in lines]
    bump, call, effect = (
        next(number for number, what in enumerate(told) if what.startswith(start))
        for start in (
            "bumped by ana",
            "priority set to 850 by ApplyRole/apply",
            "RUNNING -> preempted (in-share)",
        )
    )
    assert bump < call < effect


def test_the_audit_is_shown_per_share_and_undocumented_texts_are_marked(plain: tuple[int, str]) -> None:
    text = plain[1]
    for share in SHARES:
        assert f"audit trail of {share.name}, read back from DynamoDB" in text
    assert "cross-share: Cross-share preemption triggered to reclaim borrowed capacity\n" in text
    assert re.search(r"in-share: .*\[assumed\]$", text, re.MULTILINE)


def test_the_same_seed_tells_the_same_story(plain: tuple[int, str], machine: dict[str, Any]) -> None:
    again = [(row["time"][11:19], row["who"], row["what"]) for row in machine["timeline"] if row["who"]]
    first = TIMED.findall(plain[1].partition("audit trail of")[0])
    assert [(at, who, what) for at, who, what in first] == again


def test_the_machine_output_holds_everything(machine: dict[str, Any]) -> None:
    assert (machine["code"], machine["holds"]) == (0, True)
    assert {check["holds"] for check in machine["checks"]} == {True}
    assert set(machine["audit"]) == {"background", "medium", "urgent"}
    kinds = {fact["kind"] for fact in machine["audit"]["background"]}
    assert kinds >= {
        "preemption",
        "preemption-measure",
        "preemptor",
        "bump",
        "priority-changed",
        "boost-ended",
        "job-ended",
    }


# --- the checks can fail ----------------------------------------------------------------------------------


def test_a_scheduler_without_in_share_preemption_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Pass, "_push_out", lambda self, job: False)
    code, text = demo()
    assert code == 1
    assert "FAIL  background-3 is RUNNING: started by the bump\n" in text
    assert "        expected 'RUNNING'\n        seen     'RUNNABLE'" in text


def test_a_hand_that_does_nothing_is_noticed() -> None:
    failing = failing_until(SHARES, "background-3 has the bumped", handlers={"Apply": _idle})
    assert [check.seen for check in failing.values()] == [100]


def _idle(event: Mapping[str, Any], context: Any, runtime: Runtime) -> Mapping[str, Any]:
    return {}


# --- other settings tell another story --------------------------------------------------------------------


def flipped(**shares: dict[str, Any]) -> tuple[Share, ...]:
    return tuple(replace(share, **shares.get(share.name, {})) for share in SHARES)


def failing_until(
    shares: tuple[Share, ...], last: str, handlers: Mapping[str, Handler] | None = None
) -> dict[str, Check]:
    """The checks that fail up to the one named ``last``; the story stops there."""
    failing: dict[str, Check] = {}
    with local_stack(VirtualClock(START), Setup(seed=7, policy=load_policy())) as stack:
        stack.handlers.update(handlers or {})
        for check in ThreeTeams(stack, lambda line: None, shares).tell():
            if not check.holds:
                failing[check.name] = check
            if check.name.startswith(last):
                return failing
    raise AssertionError(f"no check begins with {last}")


def test_a_lending_urgent_share_gives_its_idle_instance_away_and_takes_it_back() -> None:
    failing = failing_until(flipped(urgent={"strategy": "LEND"}), "nobody was preempted")
    assert [check.seen for check in failing.values()] == ["RUNNING", {"background-3": ["cross-share"]}]


def test_a_reserving_medium_share_lends_nothing_so_nothing_comes_back() -> None:
    failing = failing_until(flipped(medium={"strategy": "RESERVE"}), "medium took")
    assert [check.seen for check in failing.values()] == ["RUNNABLE", {}]


def test_a_background_share_that_may_only_lend_borrows_nothing() -> None:
    failing = failing_until(flipped(background={"strategy": "LEND"}), "background-3 is RUNNABLE")
    assert [(name.partition(" ")[0], check.seen) for name, check in failing.items()] == [
        ("background-2", "RUNNABLE")
    ]


def test_without_in_share_preemption_a_bump_pushes_nobody_out() -> None:
    shares = flipped(background={"in_share_preemption": False})
    failing = failing_until(shares, "background-3 pushed out")
    assert [check.seen for check in failing.values()] == ["RUNNABLE", {"background-2": ["cross-share"]}]
