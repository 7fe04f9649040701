"""Custom rules' expressions: what they say, what is refused at load and where, and what they may cost."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharewarden.domain.base import Frozen
from sharewarden.domain.expressions import CelError, expression
from sharewarden.domain.expressions.syntax import DEEPEST, LONGEST
from sharewarden.domain.rules.base import Unknown

from tests.unit.rules.kit import NOW, facts

UNITS = {"ml.g5.xlarge": {"limit": 4, "used": 6}, "ml.p5.48xlarge": {"limit": 1}}
GIVEN = facts(
    job={
        "instances": 8,
        "gpus": 64,
        "instance_type": "ml.g5.xlarge",
        "tags": {"team": "vision", "cost-center": "42", "note": "é ✓"},
        "deadline": NOW + 3_600_000,
        "max_runtime": 7200,
        "status": "STARTING",
    },
    share={"units": UNITS, "borrow_limit": -1},
)


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("job.instances >= 8 && now.getHours() == 12", True),
        ("job.instances > 8 || now.getDayOfWeek() == 1", True),
        ("has(job.user)", False),
        ("!has(job.user) || job.user == 'ana'", True),
        ("job.tags['cost-center'] == '42'", True),
        ("int(job.tags['cost-center']) > 41", True),
        ("'project' in job.tags", False),
        ("job.tags.note == 'é ✓' && job.tags.note.size() == 6", True),  # bytes, not characters
        ("job.deadline - now == duration('1h')", True),
        ("job.deadline < timestamp('2026-11-30T13:00:01Z')", True),
        ("share.units[job.instance_type].used - share.units[job.instance_type].limit == 2", True),
        ("share.units.exists(unit, unit.startsWith('ml.p5') && share.units[unit].limit == 1)", True),
        ("share.units.all(unit, share.units[unit].limit > 1)", False),
        ("share.units.filter(unit, share.units[unit].limit > 1).size() == 1", True),
        ("job.instances in share.units.map(unit, share.units[unit].limit * 2)", True),
        ("job.status in ['SCHEDULED', 'STARTING']", True),
        ("job.tags.exists(key, key in ['team', 'owner'])", True),
        ("job.gpus == 64 ? job.instances == 8 : false", True),
        ("-job.instances < 0 && !(!true)", True),
        ("share.borrow_limit == -1", True),
        ("job.max_runtime > 3600 // an hour", True),
        ("(job.instances == 8\n  && true)", True),
        ('job.name.matches("^vision-r[0-9]$") && """a"b""" != r"\\d"', True),
        ("{'a': 1, 'b': 2}['b'] == [1, 2,][1]", True),
        ("job.drifted == false && 0x10 == 16 && .5 < 1e1 && 1u == 1u", True),
        # what is missing decides nothing, unless the rest decides
        ("job.user == 'ana'", Unknown(what="job.user")),
        ("job.user == 'ana' && false", False),
        ("job.user == 'ana' || true", True),
        ("job.tags.project == 'x'", Unknown(what="job.tags.project")),
        ("job.tags['project'] == 'x'", Unknown(what="project")),
        ("team.queued_jobs > 3", Unknown(what="team")),
        ("has(sla.start_within)", Unknown(what="sla")),
        ("share.units['ml.g6.xlarge'].used > 3", Unknown(what="ml.g6.xlarge")),
        # and so does what goes wrong
        ("job.gpus / (job.instances - 8) > 1", Unknown(what="division by zero in CEL expression")),
        ("[1, 2][job.instances] == 1", Unknown(what="index out of bounds: 8")),
        ("duration(job.tags.team) > duration('1s')", "Function 'duration' error"),
        ("job.instances + 9223372036854775800 > 0", "Arithmetic overflow"),
    ],
)
def test_what_an_expression_says(when: str, says: bool | Unknown | str) -> None:
    word = expression(when).holds(GIVEN)
    if isinstance(says, str):
        assert isinstance(word, Unknown)
        assert word.what.startswith(says)
    else:
        assert word == says


@pytest.mark.parametrize(
    ("when", "at", "why"),
    [
        # names, in branches that never run as well
        ("job.instance >= 8", 5, "there is no job.instance: did you mean 'instances'?"),
        ("jobb.instances > 1", 1, "there is no jobb: did you mean 'job'?"),
        ("false && job.nam == 'x'", 14, "there is no job.nam: did you mean 'name'?"),
        ("true ? true : job.usr == 'x'", 19, "there is no job.usr: did you mean 'user'?"),
        ("has(job.instanes)", 9, "there is no job.instanes: did you mean 'instances'?"),
        ("deadline > now", 1, "there is no deadline: there is job, now, share, sla, team, user"),
        ("share.units['x'].limitt > 1", 18, "there is no share.units['x'].limitt: did you mean 'limit'?"),
        ("job.instances.foo == 1", 15, "job.instances has nothing inside"),
        ("now.hours < 6", 5, "now has nothing inside: write for example now.getHours()"),
        ("team.granted_sla.gold", 18, "team.granted_sla has no members"),
        ("job['name'] == 'x'", 1, "write job.member, not job['name']"),
        ("job.name.match('x')", 10, "there is no match(): did you mean 'matches'?"),
        ("siz(job.tags) > 1", 1, "there is no siz(): did you mean 'size'?"),
        ("job.name.lowerAscii() == 'x'", 10, "there is no lowerAscii(): there is contains, endsWith"),
        ("has(job)", 1, "has() asks for a member, as in has(job.user)"),
        ("job.tags.all(k)", 10, "all() is written as all(name, expression)"),
        ("job.tags.all(job, job == 'a')", 14, "'job' is taken: use another name"),
        ("job.tags.all(int, int == 'a')", 14, "'int' is taken: use another name"),
        ("team.owned_gpu_hours.year > 1.0", 22, "team.owned_gpu_hours.year: there is never 'year'"),
        ("job.status == 'RUNING'", 15, "there is no 'RUNING': did you mean 'RUNNING'?"),
        ("job.status in ['RUNNING', 'QUEUED']", 27, "there is no 'QUEUED': there is FAILED, PENDING"),
        # types
        ("job.instances", 1, "a rule is a yes or no, and job.instances is a number"),
        ("job.instances == '8'", 1, "job.instances is a number, and '8' is a text: they are never equal"),
        ("now != '2026'", 1, "now is a time, and '2026' is a text: they are never equal"),
        (
            "job.instances in ['a']",
            1,
            "job.instances is a number, and ['a'] has a text: they are never equal",
        ),
        ("5 in job.tags", 1, "5 is a number, and job.tags has a text: they are never equal"),
        ("job.user == null", 1, "what is not known is left out and never null: use has(...)"),
        ("job.instances > 100000 && job.name > 5", 27, "job.name > 5: these types do not go together"),
        ("true || job.instances", 9, "|| joins a yes or no, and job.instances is a number"),
        ("job.instances ? true : false", 1, "'?' asks for a yes or no, and job.instances is a number"),
        ("true ? job.instances : 1", 1, "a rule is a yes or no, and true ? job.instances : 1 is a number"),
        ("job.tags.all(k, k)", 17, "all() asks for a yes or no, and k is a text"),
        (
            "job.tags.all(k, k == 'a' && job.tags[k] > 3)",
            29,
            "job.tags[k] > 3: these types do not go together",
        ),
        (
            "job.tags.exists(k, job.tags[k] == 3)",
            20,
            "job.tags[k] is a text, and 3 is a number: they are never",
        ),
        (
            "job.tags.exists(a, share.units.exists(b, b == 1 || a == 'x'))",
            42,
            "b is a text, and 1 is a number: they are never equal",
        ),
        (
            "job.tags['cost-center'] > 4711",
            1,
            "job.tags['cost-center'] > 4711: these types do not go together",
        ),
        ("share.units['ml.p6'].limit == '8'", 1, "share.units['ml.p6'].limit is a number, and '8' is a text"),
        ("job.waiting > duration('1h')", 1, "job.waiting > duration('1h'): these types do not go together"),
        ("job.name.startsWith(1)", 10, "job.name.startsWith(1): startsWith() does not take that"),
        ("now.getHours('Europe/Berlin') > 1", 5, "getHours() does not take that"),
        ("job.name.matches('[')", 10, "Function 'matches' error: '[' not a valid regex"),
        ("timestamp('noon') > now", 1, "timestamp('noon'): Function 'timestamp' error"),
        ("job.instances > 1 / 0", 17, "1 / 0: division by zero"),
        # grammar
        ("", 1, "it ends too early, a value is expected"),
        ("job.instances >", 16, "it ends too early, a value is expected"),
        ("job.instances > 1 and true", 19, "'and' is not expected here, write &&"),
        ("job.instances > 1 or true", 19, "'or' is not expected here, write ||"),
        ("job. > 1", 6, "'>' is not expected here, a member is expected"),
        ("job.in > 1", 5, "'in' is not expected here, a member is expected"),
        ("(true", 6, "it ends too early, ')' is expected"),
        ("[1, 2", 6, "it ends too early, ']' is expected"),
        ("{'a' 1}", 6, "'1' is not expected here, ':' is expected"),
        ("true ? false", 13, "it ends too early, ':' is expected"),
        ("job.instances = 8", 15, "'=' is not expected here"),
        ("job.name == 'x", 13, '"\'" is not expected here'),
        ("!-1", 1, "'!' and '-' cannot follow each other"),
        ("Foo{a: 1}", 4, "'{' is not expected here"),
        (r"job.name == '\q'", 13, "token recognition error"),
        # bounds
        ("true " * 101, LONGEST + 1, "it has 505 characters, and 500 are allowed"),
        ("(" * DEEPEST + "true" + ")" * DEEPEST, DEEPEST + 1, f"it is nested more than {DEEPEST} deep"),
        (
            "job.tags.all(a, job.tags.all(b, job.tags.all(c, a == b)))",
            42,
            "all(): at most 2 of such may be in a rule",
        ),
        ("['a'].map(x, x + x).map(y, y + y).map(z, z + z) == []", 35, "map(): at most 2 of such"),
        ("job.tags.map(k, " + "+".join("k" * 21) + ") == []", 17, "has 41 parts, and 40 are allowed"),
        ("job.tags.map(k, job.tags).size() > 1", 17, "map() collects single values"),
        ("job.tags.map(k, true ? job.tags : job.tags).size() > 1", 17, "map() collects single values"),
        ("job.tags.map(k, dyn(job.tags)).size() > 1", 17, "map() collects single values"),
        ("job.tags.map(k, job.tags.map(j, j)).size() > 1", 17, "map() collects single values"),
        ("job.tags.map(k, ['a']).size() > 1", 17, "map() collects single values"),
        ("job.tags.exists(k, [job.tags, job.tags].size() > 1)", 20, "holds constants only"),
        ("job.tags.map(k, job.tags.all(j, {'a': job.tags} != {}))", 33, "holds constants only"),
        ("job.tags.exists(k, k.matches('x'))", 22, "matches() may not be used for each of many"),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(when: str, at: int, why: str) -> None:
    with pytest.raises(CelError) as refused:
        expression(when)
    assert str(refused.value).startswith(f"at character {at} of the expression: ")
    assert why in str(refused.value)
    assert refused.value.at == at - 1


def test_the_place_in_several_lines() -> None:
    with pytest.raises(CelError, match=r"^at line 2, character 8 of the expression: there is no job\.usr"):
        expression("job.instances > 1\n&& job.usr == 'x'\n")


def test_a_place_that_the_library_gives_in_several_lines() -> None:
    with pytest.raises(CelError, match=r"^at line 2, character 16 of the expression: "):
        expression("true\n&& job.name == '\\q'")


def test_as_long_and_as_deep_as_allowed() -> None:
    assert expression("job.tags.map(k, " + "+".join("k" * 20) + ").size() == 3").holds(GIVEN) is True
    assert expression("true".ljust(LONGEST)).holds(GIVEN) is True
    deep = DEEPEST - 1
    assert expression("(" * deep + "true" + ")" * deep).holds(GIVEN) is True


def test_the_facts_that_it_read_are_its_figures() -> None:
    found = expression(
        "job.instances > 1 && job.user != 'x' && size(job.tags) > 0 && share.units['a'].limit > 1"
    )
    assert found.figures(GIVEN) == {"job.instances": 8}
    assert found.reads == ("job.instances", "job.tags", "job.user", "share.units")


def test_every_fact_can_be_read() -> None:
    """A fact that is added has a place in the samples and a type that expressions can compare."""
    parts: dict[str, type[Frozen]] = {"job": type(GIVEN.job), "share": type(GIVEN.share)}  # type: ignore[dict-item]
    for root, model in parts.items():
        for name in model.model_fields:
            assert expression(f"{root}.{name} == {root}.{name}").reads == (f"{root}.{name}",)


NAMES = (
    "job share team now .instances .tags .name .units .limit k true false null 1 2.5 'x' 1u r'\\d' has( size("
)
MARKS = (
    "[0] ['x'] ( ) [ ] { } , : ? && || ! - + * / % == != < >= in . // .getHours() .all(k, .map(k, .matches("
)
WORDS = st.sampled_from([*NAMES.split(), *MARKS.split(), "\n"])


@settings(max_examples=400)
@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(WORDS, max_size=14).map("".join),
        st.lists(WORDS, max_size=14).map(" ".join),
    )
)
def test_whatever_is_written_is_refused_or_says_something(when: str) -> None:
    try:
        found = expression(when)
    except CelError:
        return
    assert isinstance(found.holds(GIVEN), bool | Unknown)
    assert isinstance(found.holds(facts()), bool | Unknown)


TAGS = st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=5)


@given(TAGS, st.integers(0, 2**70), st.integers(-(2**62), 2**62))
def test_whatever_the_facts_are_it_says_something(tags: dict[str, str], number: int, then: int) -> None:
    job: dict[str, Any] = {"tags": tags, "instances": number, "deadline": then}
    word = expression("job.tags.all(k, k in job.tags) && job.instances >= 0 && job.deadline != now")
    assert isinstance(word.holds(facts(job=job)), bool | Unknown)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


LOADED = (
    "import sys; from sharewarden.domain.policy import Policy;"
    " Policy.model_validate({{'guardrails': [{}]}}); print({})"
)


def test_without_a_custom_rule_no_cold_start_pays_for_them() -> None:
    entry = "{'rule': 'cannot-fit'}"
    assert run(LOADED.format(entry, "'sharewarden.domain.expressions' in sys.modules")) == "False"


def test_with_one_the_librarys_command_line_is_not_loaded() -> None:
    entry = "{'name': 'x', 'when': 'job.instances > 1'}"
    assert run(LOADED.format(entry, "{'cel.cli', 'typer', 'rich', 'pygments'} & {*sys.modules}")) == "set()"
