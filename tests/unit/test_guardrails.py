"""What guardrails make of one job: begin, go on, end; nothing changed means nothing done."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from sharewarden.domain.decide import Decision, decide_read
from sharewarden.domain.guardrails import MOST_FINDINGS, REST, ROOM, guard, needs_pool
from sharewarden.domain.known import KnownShares, facts_of
from sharewarden.domain.marks import KEPT_MARKS, Mark, standing, with_mark, without_acts
from sharewarden.domain.observation import Status
from sharewarden.domain.policy import Policy, QueuePolicy, SharePolicy
from sharewarden.domain.record import JobRecord, absorb, new_record
from sharewarden.domain.rules.base import Action, Fires, Guardrail, Mode, Unknown, Verdict
from sharewarden.domain.rules.facts import Facts
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.domain.termination import MOST_OPEN, due_terminations

from tests.simulation.samples import JOB, described
from tests.simulation.world import NOW, QUEUE

TEXT = "is wrong"


class Says(Guardrail):
    """A rule that says what the job's tag ``project`` says: ``fires <subject> <about> <only told>``."""

    rule: str = "says"

    def decide(self, facts: Facts) -> Verdict:
        word, *more = (facts.job.project or "holds").split()
        if word == "breaks":
            raise ZeroDivisionError
        if word == "unknown":
            return Unknown(what="job.project")
        if word == "holds":
            return None
        subject, about, told = (*more, *("", "job", "")[len(more) :])
        return Fires(text=TEXT, subject=subject, about=about, only_told=bool(told))


def policy(
    *entries: Guardrail, mode: Mode = "enforce", protected: bool = False, paused: bool = False
) -> Policy:
    shares = {"background": SharePolicy(team="research", protected=protected)}
    queues = {"ml-train-qm": QueuePolicy(mode=mode, bumps="shadow", shares=shares)}
    return Policy(queues=queues, guardrails=entries or (Says(),), paused=paused)


def job(says: str, state: Status = "RUNNABLE", **more: Any) -> JobRecord:
    read = described(status=state, tags=(("project", says),), read_at=NOW, **more)
    return decide_read(new_record(read), read, Policy()).record


def says(record: JobRecord, word: str) -> JobRecord:
    return record.model_copy(update={"tags": (("project", word),)})


class Failures(list[str]):
    def __call__(self, entry: Guardrail, error: Exception) -> None:
        self.append(f"{entry.label}: {type(error).__name__}")


def decided(record: JobRecord, rules: Policy, now: int = NOW, room: int = ROOM) -> Decision:
    facts = facts_of(record, KnownShares(), rules, now)
    return guard(record, rules, facts, now, room=room, failed=Failures())


def keys(decision: Decision) -> list[str]:
    return [fact.key for fact in decision.facts]


# --- begin ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["shadow", "enforce"])
@pytest.mark.parametrize(
    ("action", "told"), [("record", 0), ("notify", 1), ("lower-priority", 1), ("terminate", 1)]
)
def test_a_broken_rule_is_one_fact_and_one_notice(action: Action, told: int, mode: Mode) -> None:
    rules = policy(Says(action=action), mode=mode)
    decision = decided(job("fires"), rules)
    (fact,) = decision.facts
    entry = rules.guardrails[0]
    assert fact.key == f"finding#{JOB}#says#{entry.fingerprint}#"
    assert (fact.mode, fact.policy, fact.actor) == (mode, rules.hash, "guardrail:says")
    assert (fact.figures["action"], fact.figures["rule"], fact.reason) == (action, "says", "is wrong")
    assert fact.inputs["job"]["project"] == "fires"
    assert [(notice.fact, notice.mode) for notice in decision.notices] == [(fact.key, mode)] * told


@pytest.mark.parametrize(
    ("action", "mode", "told"),
    [
        ("notify", "enforce", "is wrong"),
        (
            "lower-priority",
            "shadow",
            "is wrong; its priority would go down by 100 until the rule holds again",
        ),
        (
            "terminate",
            "enforce",
            "is wrong; it is terminated after 10 min at the earliest, by a sweep,"
            " unless the rule holds again",
        ),
    ],
)
def test_a_notice_says_what_follows(action: Action, mode: Mode, told: str) -> None:
    (notice,) = decided(job("fires"), policy(Says(action=action), mode=mode)).notices
    assert notice.text == told


@pytest.mark.parametrize("word", ["holds", "unknown", "breaks"])
def test_a_rule_that_holds_or_cannot_tell_begins_nothing(word: str) -> None:
    record = job(word)
    assert decided(record, policy(Says(action="terminate"))) == Decision(record=record)


def test_law_09_what_was_found_is_not_found_again() -> None:
    rules = policy(Says(action="terminate"), Says(name="other", action="lower-priority"))
    record = decided(job("fires"), rules).record
    assert decided(record, rules, NOW + MINUTE) == Decision(record=record)


@pytest.mark.parametrize("action", ["record", "notify", "lower-priority", "terminate"])
@pytest.mark.parametrize(
    "word", ["fires", "fires week", "fires week team", "fires n job told", "holds", "unknown"]
)
def test_law_09_shadow_finds_what_enforce_does_and_begins_nothing(word: str, action: Action) -> None:
    record = job(word)
    shadow = decided(record, policy(Says(action=action), mode="shadow"))
    enforce = decided(record, policy(Says(action=action), mode="enforce"))
    plain = {"mode", "policy"}
    assert [fact.model_dump(exclude=plain) for fact in shadow.facts] == [
        fact.model_dump(exclude=plain) for fact in enforce.facts
    ]
    assert [notice.fact for notice in shadow.notices] == [notice.fact for notice in enforce.notices]
    without = {"marks": ()}
    assert shadow.record.model_copy(update=without) == record
    assert (shadow.record.terminations, shadow.record.priority) == (record.terminations, record.priority)


@pytest.mark.parametrize(
    ("entry", "rules"),
    [
        (Says(mode="shadow"), {}),
        (Says(mode="enforce"), {"mode": "shadow"}),
    ],
)
def test_an_entry_s_own_mode_wins_over_the_queue_s(entry: Guardrail, rules: dict[str, Any]) -> None:
    (fact,) = decided(job("fires"), policy(entry, **rules)).facts
    assert fact.mode == entry.mode


def test_an_act_begins_with_its_finding() -> None:
    lowered = decided(job("fires"), policy(Says(action="lower-priority", points=50)))
    (boost,) = lowered.record.priority.boosts
    assert (boost.amount, boost.by) == (-50, "guardrail:says")
    assert lowered.record.priority.wish is not None
    ended = decided(job("fires"), policy(Says(action="terminate", grace=5 * MINUTE)))
    (wish,) = ended.record.terminations
    assert (wish.not_before, wish.reason) == (NOW + 5 * MINUTE, "is wrong")
    assert wish.id == standing(ended.record.marks)[0].act


@pytest.mark.parametrize("action", ["terminate", "lower-priority"])
def test_an_act_keeps_so_much_of_a_long_text(action: Action, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record holds dozens of acts, and an item of DynamoDB 400 KB."""
    monkeypatch.setattr(f"{__name__}.TEXT", "x" * 100_000)
    decision = decided(job("fires"), policy(Says(action=action)))
    assert len(decision.facts[0].reason) == 100_000
    assert len(decision.record.model_dump_json()) < 10_000


@pytest.mark.parametrize(
    ("record", "rules"),
    [
        (job("fires"), {"protected": True}),
        (job("fires x job told"), {}),
        (job("fires", "SUCCEEDED", stopped_at=NOW), {}),
        (job("fires").model_copy(update={"adopted": True}), {}),
    ],
    ids=["protected share", "the rule says so", "ended", "there before"],
)
@pytest.mark.parametrize("action", ["lower-priority", "terminate"])
def test_where_nothing_may_be_done_it_is_told(
    record: JobRecord, rules: dict[str, Any], action: Action
) -> None:
    decision = decided(record, policy(Says(action=action), **rules))
    (fact,) = decision.facts
    assert (fact.figures["action"], fact.figures["asked"]) == ("notify", action)
    assert "is not done" in decision.notices[0].text
    assert (decision.record.terminations, decision.record.priority.boosts) == (record.terminations, ())


def test_a_team_s_finding_is_one_for_all_its_jobs_unless_something_is_done_to_them() -> None:
    told = policy(Says(action="notify"))
    one, other = job("fires week team"), job("fires week team", job="job-2", arn="a/job-2")
    assert keys(decided(one, told)) == keys(decided(other, told))
    assert keys(decided(one, told))[0].startswith("finding#research#says#")
    acting = policy(Says(action="lower-priority"))
    assert keys(decided(one, acting)) != keys(decided(other, acting))


@pytest.mark.parametrize(
    "record",
    [
        job("fires").model_copy(update={"classic": True}),
        job("fires").model_copy(update={"closed_at": NOW}),
    ],
    ids=["classic", "closed"],
)
def test_classic_and_closed_jobs_are_not_guarded(record: JobRecord) -> None:
    assert decided(record, policy()) == Decision(record=record)


@pytest.mark.parametrize(
    "entry", [Says(queues=("other",)), Says(shares=("urgent",)), Says(teams=("nlp",))], ids=str
)
def test_an_entry_about_others_says_nothing(entry: Guardrail) -> None:
    record = job("fires")
    assert decided(record, policy(entry)) == Decision(record=record)


def test_a_rule_that_raises_is_told_of_and_keeps_no_other_from_deciding() -> None:
    class Broken(Says):
        def decide(self, facts: Facts) -> Verdict:
            raise ZeroDivisionError

    failures, record, rules = Failures(), job("fires"), policy(Broken(name="broken"), Says())
    facts = facts_of(record, KnownShares(), rules, NOW)
    decision = guard(record, rules, facts, NOW, failed=failures)
    assert len(decision.facts) == 1
    assert failures == ["broken: ZeroDivisionError"]


# --- end ------------------------------------------------------------------------------------------------


def found(*entries: Guardrail, word: str = "fires", **rules: Any) -> JobRecord:
    return decided(job(word), policy(*entries, **rules)).record


def test_a_rule_that_holds_again_ends_its_finding_and_its_act() -> None:
    entry = Says(action="lower-priority")
    over = decided(says(found(entry), "holds"), policy(entry), NOW + MINUTE)
    cleared = next(fact for fact in over.facts if fact.kind == "finding-cleared")
    assert cleared.key == f"finding-cleared#{JOB}#says#{entry.fingerprint}#"
    assert cleared.reason == "the rule holds again"
    assert standing(over.record.marks) == ()
    assert [boost.end for boost in over.record.priority.boosts] == ["cleared"]
    assert decided(over.record, policy(entry), NOW + MINUTE) == Decision(record=over.record)


@pytest.mark.parametrize("word", ["unknown", "breaks"])
def test_law_02_what_cannot_be_told_ends_nothing(word: str) -> None:
    entry = Says(action="lower-priority")
    record = says(found(entry), word)
    assert decided(record, policy(entry), NOW + MINUTE) == Decision(record=record)


@pytest.mark.parametrize("word", ["unknown", "breaks"])
def test_law_02_a_termination_waits_until_its_rule_has_a_word_again(word: str) -> None:
    entry = Says(action="terminate")
    record = says(found(entry), word)
    doubted = decided(record, policy(entry), NOW + MINUTE)
    assert doubted.facts == ()
    assert not due_terminations(doubted.record.terminations, NOW + HOUR)
    assert decided(doubted.record, policy(entry), NOW + MINUTE) == Decision(record=doubted.record)
    again = decided(says(doubted.record, "fires"), policy(entry), NOW + MINUTE)
    assert again == Decision(record=says(record, "fires"))
    assert due_terminations(again.record.terminations, NOW + HOUR)


@pytest.mark.parametrize("word", ["fires", "unknown"])
@pytest.mark.parametrize(
    ("rules", "again"),
    [
        (policy(Says(name="another")), 0),
        (policy(Says(action="terminate", grace=0)), 1),
        (policy(Says(action="terminate", mode="shadow")), 1),
        (policy(Says(action="terminate"), mode="shadow"), 1),
        (policy(Says(action="terminate"), protected=True), 1),
        (policy(Says(action="terminate", teams=("nlp",))), 0),
    ],
    ids=["gone", "changed", "shadow", "queue in shadow", "protected", "of others"],
)
def test_a_change_of_the_policy_ends_the_act_whatever_the_rule_says(
    rules: Policy, again: int, word: str
) -> None:
    record = says(found(Says(action="terminate")), word)
    (before,) = standing(record.marks)
    decision = decided(record, rules, NOW + MINUTE)
    assert [fact.kind for fact in decision.facts].count("finding-cleared") == 1
    assert [
        wish.id for wish in decision.record.terminations if wish.id == before.act and wish.end is None
    ] == []
    anew = [fact for fact in decision.facts if fact.kind == "finding" and fact.figures["label"] == "says"]
    assert len(anew) == (again if word == "fires" else 0)
    assert before.fact not in [fact.key for fact in anew]


def test_only_the_rule_itself_ends_what_a_team_is_told_of() -> None:
    """One job of the team may leave the entry behind while the others still show the same."""
    entry = Says(action="notify")
    record = found(entry, word="fires week team")
    left = decided(record, policy(Says(name="another")), NOW + MINUTE)
    assert [fact.kind for fact in left.facts if fact.figures["label"] == "says"] == []
    assert [mark.label for mark in standing(left.record.marks)] == ["another"]
    held = decided(says(record, "holds"), policy(entry), NOW + MINUTE)
    assert keys(held) == [f"finding-cleared#research#says#{entry.fingerprint}#week"]


def test_from_shadow_to_enforce_the_act_begins_with_a_finding_of_its_own() -> None:
    record = found(Says(action="terminate"), mode="shadow")
    decision = decided(record, policy(Says(action="terminate")), NOW + MINUTE)
    assert [fact.kind for fact in decision.facts] == ["finding-cleared", "finding"]
    assert decision.facts[1].key.endswith("#~2")
    assert len(decision.record.terminations) == 1


def test_of_a_job_that_ended_nothing_is_over() -> None:
    entry = Says(action="terminate")
    record = absorb(found(entry), described(status="SUCCEEDED", stopped_at=NOW, read_at=NOW + MINUTE))
    for rules in (policy(entry), policy(Says(name="another")), policy(entry, mode="shadow")):
        for word in ("holds", "fires"):
            decision = decided(says(record, word), rules, NOW + MINUTE)
            ours = [fact for fact in decision.facts if fact.figures["label"] == "says"]
            assert ours == []
            assert set(standing(record.marks)) <= set(standing(decision.record.marks))


# --- go on ----------------------------------------------------------------------------------------------


def test_another_subject_is_another_finding_and_the_same_act() -> None:
    entry = Says(action="terminate")
    record = found(entry, word="fires 1")
    decision = decided(says(record, "fires 2"), policy(entry), NOW + MINUTE)
    assert [fact.key.rpartition("#")[2] for fact in decision.facts] == ["2"]
    assert decision.record.terminations == record.terminations
    assert standing(decision.record.marks)[0].act == record.terminations[0].id


def test_what_may_no_longer_be_done_is_given_up_and_told() -> None:
    entry = Says(action="lower-priority")
    decision = decided(says(found(entry, word="fires x"), "fires x job told"), policy(entry), NOW + MINUTE)
    assert [boost.end for boost in decision.record.priority.boosts] == ["cleared"]
    (fact,) = [fact for fact in decision.facts if fact.kind == "finding"]
    assert fact.figures["action"] == "notify"


def test_a_rule_back_and_forth_is_found_ever_more_seldom_and_at_last_no_more() -> None:
    rules, record, now = policy(Says(action="notify")), job("holds"), NOW
    told: list[int] = []
    for minute in range(20 * 24 * 60):
        now = NOW + minute * MINUTE
        decision = decided(says(record, "fires" if minute % 2 else "holds"), rules, now)
        record = decision.record
        told += [minute for fact in decision.facts if fact.kind == "finding"]
    assert len(told) == MOST_FINDINGS
    gaps = [later - earlier for earlier, later in pairwise(told)]
    assert all(gap * MINUTE >= REST * 2**n for n, gap in enumerate(gaps))
    assert len(record.marks) == 1


def test_another_subject_need_not_rest() -> None:
    rules = policy()
    record = decided(says(found(word="fires 1"), "holds"), rules, NOW + 1).record
    assert keys(decided(says(record, "fires 1"), rules, NOW + 2)) == []
    assert len(keys(decided(says(record, "fires 2"), rules, NOW + 2))) == 1


# --- bounds ---------------------------------------------------------------------------------------------


def test_what_a_commit_has_no_room_for_comes_at_the_next_look() -> None:
    rules = policy(*(Says(name=f"n{number:02}", action="terminate") for number in range(20)))
    record, rounds, seen = job("fires"), 0, set[str]()
    while (decision := decided(record, rules, room=ROOM)).facts:
        assert len(decision.facts) + len(decision.notices) <= ROOM
        assert not seen & set(keys(decision))
        seen |= set(keys(decision))
        record, rounds = decision.record, rounds + 1
    assert (len(seen), rounds > 1) == (20, True)


def test_a_record_keeps_so_many_marks_and_forgets_the_ended_ones_first() -> None:
    def mark(number: int, **more: Any) -> Mark:
        told: dict[str, Any] = {"fingerprint": "f", "subject": "", "since": NOW, "mode": "shadow"}
        told |= {"label": f"n{number}", "fact": f"f{number}", "action": "record", "asked": "record"}
        return Mark(**told | more)

    marks: tuple[Mark, ...] = ()
    for number in range(KEPT_MARKS):
        marks = with_mark(marks, mark(number, ended="held", ended_at=number) if number < 2 else mark(number))
    marks = with_mark(marks, mark(KEPT_MARKS))
    assert (len(marks), marks[0].label) == (KEPT_MARKS, "n1")
    assert with_mark(marks, marks[0]) == marks


def test_what_was_given_up_with_a_job_that_goes_on_is_found_anew() -> None:
    rules = policy(Says(action="terminate"), Says(name="told", action="notify"))
    record = found(*rules.guardrails)
    again = record.model_copy(update={"marks": without_acts(record.marks, NOW), "terminations": ()})
    decision = decided(again, rules, NOW + MINUTE)
    assert [fact.figures["label"] for fact in decision.facts] == ["says"]
    assert len(decision.record.terminations) == 1


def test_beyond_so_many_findings_nothing_more_is_found_of_a_job() -> None:
    rules = policy(*(Says(name=f"n{number:02}") for number in range(KEPT_MARKS + 1)))
    record = job("fires")
    while (decision := decided(record, rules)).facts:
        record = decision.record
    assert len(standing(record.marks)) == len(record.marks) == KEPT_MARKS


def test_an_act_that_there_was_no_room_for_begins_when_another_has_ended() -> None:
    entries = [Says(name=f"n{number}", action="terminate") for number in range(MOST_OPEN + 1)]
    record = decided(job("fires"), policy(*entries)).record
    assert [mark.act is None for mark in record.marks] == [False] * MOST_OPEN + [True]
    assert decided(record, policy(*entries), NOW + MINUTE) == Decision(record=record)
    later = decided(record, policy(*entries[1:]), NOW + MINUTE)
    assert [fact.kind for fact in later.facts if fact.kind == "finding"] == []
    assert all(mark.act for mark in standing(later.record.marks))


def test_an_act_that_the_rule_spares_now_and_then_is_begun_so_often_and_then_no_more() -> None:
    rules, record, told = policy(Says(action="lower-priority")), job("holds"), 0
    for minute in range(4 * MOST_FINDINGS):
        word = "fires x" if minute % 2 else "fires x job told"
        decision = decided(says(record, word), rules, NOW + minute * MINUTE)
        told += sum(fact.kind == "finding" for fact in decision.facts)
        record = decision.record
    assert told == MOST_FINDINGS
    assert all(boost.end for boost in record.priority.boosts)


@pytest.mark.parametrize(("queues", "expected"), [((), True), (("ml-train-qm",), True), (("other",), False)])
def test_the_pool_is_needed_where_a_rule_of_the_queue_needs_it(
    queues: tuple[str, ...], expected: bool
) -> None:
    entry: dict[str, Any] = {"rule": "max-queued-jobs-per-team", "limit": 3, "queues": queues}
    rules = Policy.model_validate({"guardrails": [entry, {"rule": "no-team"}]})
    assert needs_pool(rules, QUEUE) == expected
