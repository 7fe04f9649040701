"""Folds a listing into sets, in whatever order its objects come, in memory that does not grow with it.

Of each set only counters are kept, and sets only while they are among the newest: a name tells a set's step,
so one that is outranked stays so. S3 lists by name, where step-99 is behind step-100.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from .checkpoints import AHEAD, Layout, ObjectSeen, Save, SetSeen, State
from .layouts import INDEX, MANIFEST, OWN, SHARDS, TRAINER_STATE, WEIGHTS, Piece, member_of
from .save_patterns import Pattern

#: So many of the newest sets are looked at.
KEPT_SETS = 500
#: A set has a few groups of pieces; a name that makes up ever new ones is no layout.
MOST_GROUPS = 16

Rank = tuple[bool, int, str]


@dataclass(slots=True)
class Gathered:
    """What the listing shows of one set. ``pieces``: a bit for each rank there is, by group and world."""

    name: str
    layout: Layout
    step: int | None
    parts: int = 1
    size: int = 0
    files: int = 0
    modified_at: int = 0
    """Of the newest file."""
    pieces: dict[tuple[str, int], int] = field(default_factory=dict)
    crowded: bool = False

    def add(self, seen: ObjectSeen, piece: Piece | None) -> None:
        self.size += seen.size
        self.files += 1
        self.modified_at = max(self.modified_at, seen.modified_at)
        if piece is None or seen.size == 0:  # an empty file holds nothing to resume from
            return
        group = (piece.group, piece.world)
        if group in self.pieces or len(self.pieces) < MOST_GROUPS:
            self.pieces[group] = self.pieces.get(group, 0) | 1 << piece.rank
        else:
            self.crowded = True

    @property
    def rank(self) -> Rank:
        """The newest has the highest: by step where it is known, else by time."""
        known = self.step is not None
        return (known, self.step if self.step is not None else self.modified_at, self.name)

    def worlds(self, group: str) -> tuple[int, ...]:
        """The sizes for which every rank of the group is there, counted from zero or from one."""
        found = ((world, ranks) for (name, world), ranks in self.pieces.items() if name == group)
        return tuple(sorted(world for world, ranks in found if _is_full(world, ranks)))

    def missing(self) -> str | None:
        """What the set lacks, as far as names tell; None when it lacks nothing."""
        if self.crowded:
            return "its files are numbered in too many ways"
        return _LACKS[self.layout](self)

    def seen(self, now: int) -> SetSeen:
        """As the listing shows it. One of ours that lacks nothing is ``unverified``: its manifest tells."""
        why = self.missing()
        state: State = "incomplete" if why else "unverified" if self.layout == "manifest" else "complete"
        if state == "complete" and self.modified_at > now + AHEAD:
            state, why = "distrusted", FUTURE
        return SetSeen(
            name=self.name,
            step=self.step,
            saved_at=self.modified_at,
            size=self.size,
            files=self.files,
            layout=self.layout,
            state=state,
            why=why,
        )

    def save(self) -> Save:
        """As a save, of one that is complete."""
        return Save(
            name=self.name,
            step=self.step,
            saved_at=self.modified_at,
            size=self.size,
            files=self.files,
            layout=self.layout,
        )


FUTURE = "dated in the future"


class Sets:
    """The newest sets of what was added so far. ``dropped`` says that older ones were let go."""

    def __init__(self, patterns: tuple[Pattern, ...]) -> None:
        self._patterns = patterns
        self._sets: dict[tuple[Layout, str], Gathered] = {}
        self.objects = 0
        self.skipped = 0
        """Objects that belong to no set that is known."""
        self.dropped = False

    def add(self, page: Iterable[ObjectSeen]) -> None:
        for seen in page:
            self._add(seen)
            if len(self._sets) >= 2 * KEPT_SETS:
                self._keep_newest()

    def newest_first(self) -> list[Gathered]:
        self._keep_newest()
        return list(self._sets.values())

    def _add(self, seen: ObjectSeen) -> None:
        if not seen.key or seen.key.endswith("/"):  # how consoles mark a folder
            return
        self.objects += 1
        member = member_of(seen.key, self._patterns)
        if member is None:
            self.skipped += not seen.key.startswith(OWN)
            return
        known = self._sets.get((member.layout, member.name))
        if known is None:
            known = Gathered(member.name, member.layout, member.step, member.parts)
            self._sets[member.layout, member.name] = known
        known.add(seen, member.piece)

    def _keep_newest(self) -> None:
        ranked = sorted(self._sets.values(), key=lambda one: one.rank, reverse=True)
        self.dropped = self.dropped or len(ranked) > KEPT_SETS
        self._sets = {(one.layout, one.name): one for one in ranked[:KEPT_SETS]}


def _is_full(world: int, ranks: int) -> bool:
    from_zero = (1 << world) - 1
    return ranks & from_zero == from_zero or (ranks >> 1) & from_zero == from_zero


def _counted(gathered: Gathered, group: str) -> str | None:
    """``2 of 4``, of the group's world that is nearest to complete."""
    found = [(ranks.bit_count(), world) for (name, world), ranks in gathered.pieces.items() if name == group]
    return "{} of {}".format(*max(found, key=lambda one: (one[0] / one[1], one))) if found else None


def _lacks_manifest(one: Gathered) -> str | None:
    if one.worlds(MANIFEST) or one.worlds(""):
        return None
    there = _counted(one, "")
    return f"only {there} ranks have their manifest" if there else f"no {MANIFEST}"


def _lacks_weights(one: Gathered) -> str | None:
    if not one.worlds(TRAINER_STATE):
        return f"no {TRAINER_STATE}"
    if one.worlds(WEIGHTS):
        return None
    indexed = [group.removeprefix(INDEX) for group, _ in one.pieces if group.startswith(INDEX)]
    if any(one.worlds(SHARDS + name) for name in indexed):
        return None
    there = [text for name in indexed if (text := _counted(one, SHARDS + name))]
    if there:
        return f"only {there[0]} shards of the weights"
    return (
        "no index of its shards" if any(group.startswith(SHARDS) for group, _ in one.pieces) else "no weights"
    )


def _lacks_file(one: Gathered) -> str | None:
    return None if one.pieces else "it is empty"


def _lacks_parts(one: Gathered) -> str | None:
    whole = sum(bool(one.worlds(str(part))) for part in range(one.parts))
    if whole == one.parts:
        return None
    if one.parts > 1:
        return f"only {whole} of {one.parts} parts of the pattern are whole"
    there = _counted(one, "0")
    return f"only {there} ranks" if there else "it is empty"


_LACKS = {
    "manifest": _lacks_manifest,
    "hugging-face": _lacks_weights,
    "pytorch": _lacks_file,
    "pattern": _lacks_parts,
}
