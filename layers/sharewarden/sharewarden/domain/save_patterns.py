"""How a policy describes checkpoint sets of a layout that Sharewarden does not know by itself.

    step-{step}/model-{rank}-of-{world}.bin       shards with names of their own
    ckpt-{step}.model + ckpt-{step}.optimizer     several files make one set
    run-*/epoch={step}.ckpt                       * is anything but a slash

A pattern is held against whole keys below the URI. It becomes a regular expression in which no two parts can
match the same characters in two ways, so that no key takes long, whoever chose it.
"""

import re
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

LONGEST = 300
MOST_PARTS = 10
#: The largest world whose ranks are counted; more GPUs than that train nothing yet.
MOST_WORLD = 16_384

Name = Literal["step", "rank", "world"]
_NUMBERS: dict[str, str] = {"{step}": "[0-9]{1,18}", "{rank}": "[0-9]{1,6}", "{world}": "[0-9]{1,6}"}
_TOKEN = re.compile(r"\{step\}|\{rank\}|\{world\}|\*")
_BETWEEN_PARTS = " + "


class Match(NamedTuple):
    """What a key says of itself: the set that it belongs to, and which of its pieces it is."""

    name: str
    step: int | None
    part: int
    rank: int
    world: int


class Pattern(NamedTuple):
    """``parts``: a regular expression for each file, or family of shards, that makes up a set."""

    text: str
    parts: tuple[re.Pattern[str], ...]

    def match(self, key: str) -> Match | None:
        """None when the key is of none of its parts."""
        for number, part in enumerate(self.parts):
            if found := part.fullmatch(key):
                return self._match(key, number, found)
        return None

    def _match(self, key: str, part: int, found: re.Match[str]) -> Match | None:
        given = found.groupdict()
        world, rank = int(given.get("world", 1)), int(given.get("rank", 0))
        if not 1 <= world <= MOST_WORLD or rank > world:
            return None
        step = int(given["step"]) if "step" in given else None
        return Match(self._name(key, found), step, part, rank, world)

    def _name(self, key: str, found: re.Match[str]) -> str:
        """One name for all keys of the set: the key with ``{rank}`` for the number, or the filled pattern."""
        if len(self.parts) > 1:
            return self.text.replace("{step}", found.groupdict().get("step", ""))
        if "rank" not in found.groupdict():
            return key
        start, end = found.span("rank")
        return f"{key[:start]}{{rank}}{key[end:]}"


@lru_cache(maxsize=256)
def compiled(text: str) -> Pattern:
    """The pattern in ``text``. Raises ValueError, which says what to write instead."""
    parts = text.split(_BETWEEN_PARTS)
    if len(parts) > MOST_PARTS:
        raise ValueError(f"{len(parts)} parts, {MOST_PARTS} at most")
    for part in parts:
        _check_path(part)
        _check_numbers(part)
    _check_together(text, parts)
    return Pattern(text, tuple(map(_expression, parts)))


def _check(text: str) -> str:
    compiled(text)
    return text


SavePattern = Annotated[str, Field(min_length=1, max_length=LONGEST), AfterValidator(_check)]
"""The text of a pattern that compiles."""


def _expression(part: str) -> re.Pattern[str]:
    """The second time that a placeholder stands in a part, it stands for the same digits."""
    made, end, named = "", 0, set[str]()
    for token in _TOKEN.finditer(part):
        made += re.escape(part[end : token.start()]) + _for_token(token[0], named)
        end = token.end()
    return re.compile(made + re.escape(part[end:]))


def _for_token(token: str, named: set[str]) -> str:
    name = token[1:-1]
    if token == "*":  # noqa: S105  # no secret: the sign for anything
        return "[^/]{1,255}"
    if name in named:
        return f"(?P={name})"
    named.add(name)
    return f"(?P<{name}>{_NUMBERS[token]})"


def _check_path(part: str) -> None:
    steps = part.split("/")
    if not part.isprintable() or part != part.strip():
        raise ValueError(f"{part!r} has spaces around it, or characters that cannot be seen")
    if "" in steps or {".", ".."} & set(steps):
        raise ValueError(
            f"{part!r} is no path below the checkpoint URI: write for example step-{{step}}/model.bin"
        )
    if any(step.count("*") > 1 for step in steps):
        raise ValueError(f"{part!r} has more than one * between two slashes")


def _check_numbers(part: str) -> None:
    left = _TOKEN.sub("", part)
    if "{" in left or "}" in left:
        raise ValueError(f"{part!r} has a brace that is none of {{step}}, {{rank}}, {{world}}")
    ends = "|".join((r"[0-9]", *map(re.escape, _NUMBERS), r"\*"))
    for token in _NUMBERS:
        beside = rf"(?:{ends}){re.escape(token)}|{re.escape(token)}(?:{ends})"
        if re.search(beside, part):
            raise ValueError(f"{part!r}: put a sign that is no digit between {token} and its neighbour")
    if ("{rank}" in part) != ("{world}" in part):
        raise ValueError(f"{part!r} has {{rank}} or {{world}} alone: how many there are cannot be told then")


def _check_together(text: str, parts: list[str]) -> None:
    if "*" in text and len(parts) > 1:
        raise ValueError(f"{text!r} joins parts by + and has *: which of them belong together cannot be told")
    if "*" in text and "{rank}" in text and "{step}" not in text:
        raise ValueError(f"{text!r} has * and {{rank}}: it needs {{step}} as well")
    if len({"{step}" in part for part in parts}) > 1:
        raise ValueError(f"{text!r}: every part has {{step}}, or none")
