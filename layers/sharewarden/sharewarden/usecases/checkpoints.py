"""What is saved under a job's checkpoint URI: one bounded pass over the listing, manifests for the newest."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from sharewarden.domain.base import Frozen
from sharewarden.domain.checkpoints import ObjectSeen, Save, SetSeen, inside
from sharewarden.domain.layouts import MANIFEST, member_of
from sharewarden.domain.listing import FUTURE, Gathered, Sets
from sharewarden.domain.manifests import (
    MOST_BYTES,
    Manifest,
    Part,
    fault,
    files_of,
    parse,
    save_of,
    worlds_of,
)
from sharewarden.domain.save_patterns import compiled
from sharewarden.ports import Runtime

#: Pages of a thousand objects that one look takes.
MOST_PAGES = 300
#: Pages of the folder of one set whose files are compared with its manifests.
MOST_FOLDER_PAGES = 20
#: Sets of ours whose manifests are read until one of them is complete.
CANDIDATES = 5
#: Manifests that one look reads: one a rank.
MOST_MANIFESTS = 4_096
#: Sets that a look tells of.
MOST_TOLD = 50


Counts = Callable[[Save], bool]


class Wanted(NamedTuple):
    """What a look is after: see ``newest``. ``to_verify``: sets beside it whose manifests are read, too."""

    counts: Counts = lambda _: True
    since: int = 0
    to_verify: int = 0


class Looked(Frozen):
    """What a look found.

    ``save`` None with ``partial`` is not "no checkpoint": the look ended at one of its bounds, and what it
    did not see may hold one. A ``save`` with ``partial`` is complete, but there may be a newer one.
    """

    save: Save | None
    partial: bool
    sets: tuple[SetSeen, ...]
    """The newest first."""
    objects: int
    skipped: int
    """Objects whose names belong to no layout that is known."""


def newest(
    runtime: Runtime,
    uri: str,
    patterns: tuple[str, ...],
    now: int,
    counts: Counts = lambda _: True,
    since: int = 0,
) -> Looked:
    """The newest complete set below ``uri``, now, of those that count. Raises Unavailable, Denied.

    Sets whose files are all from before ``since`` (epoch ms, S3's time) are passed over unread.
    """
    return _looked(runtime, uri, patterns, now, Wanted(counts, since))


def listed(runtime: Runtime, uri: str, patterns: tuple[str, ...], now: int) -> Looked:
    """The same, with as many more manifests read as a look may, for people. Raises Unavailable, Denied."""
    return _looked(runtime, uri, patterns, now, Wanted(to_verify=MOST_TOLD))


def files(runtime: Runtime, uri: str, save: Save, patterns: tuple[str, ...]) -> Iterator[ObjectSeen]:
    """The objects of a save that are there now; keys are below ``uri``. Raises Unavailable, Denied.

    Where the files of a save lie in a folder of their own, only that is listed.
    """
    known = tuple(map(compiled, patterns))
    folder = f"{save.name}/" if save.layout in ("manifest", "hugging-face") else ""
    for page in runtime.checkpoints.pages(inside(uri, folder)):
        for seen in page:
            key = folder + seen.key
            member = None if key.endswith("/") else member_of(key, known)
            if member and (member.layout, member.name) == (save.layout, save.name):
                yield seen._replace(key=key)


def whole(runtime: Runtime, uri: str, name: str, now: int) -> Save | None:
    """The set of the training helper with that name, if all of it is there now; only its folder is listed.

    Raises Unavailable, Denied.
    """
    sets, folder = Sets(()), f"{name}/"
    for page in islice(runtime.checkpoints.pages(inside(uri, folder)), MOST_FOLDER_PAGES):
        sets.add([seen._replace(key=folder + seen.key) for seen in page])
    verify = _Verification(runtime, uri, now)
    found = (verify.judge(one, most=CANDIDATES)[1] for one in sets.newest_first())
    return next((save for save in found if save is not None), None)


def _looked(
    runtime: Runtime,
    uri: str,
    patterns: tuple[str, ...],
    now: int,
    which: Wanted,
) -> Looked:
    sets, cut = _listed(runtime, uri, patterns)
    verify = _Verification(runtime, uri, now)
    save: Save | None = None
    told, unsure = list[SetSeen](), False
    for one in sets.newest_first():
        if one.modified_at < which.since:
            continue
        wanted = save is None or (one.step is not None and one.step == save.step)
        if not wanted and len(told) >= MOST_TOLD:
            break
        seen, found = verify.judge(one, most=CANDIDATES if wanted else which.to_verify)
        unsure = unsure or (wanted and seen.state == "unverified")
        if wanted and found is not None and which.counts(found):
            save = _later(save, found)
        told.append(seen)
    partial = cut or unsure or (save is None and sets.dropped)
    return Looked(
        save=save, partial=partial, sets=tuple(told[:MOST_TOLD]), objects=sets.objects, skipped=sets.skipped
    )


def _listed(runtime: Runtime, uri: str, patterns: tuple[str, ...]) -> tuple[Sets, bool]:
    """The sets of the listing, and whether it goes on behind what was read."""
    sets = Sets(tuple(map(compiled, patterns)))
    pages = runtime.checkpoints.pages(uri)
    for page in islice(pages, MOST_PAGES):
        sets.add(page)
    return sets, next(pages, None) is not None


def _later(save: Save | None, found: Save | None) -> Save | None:
    """Of two saves of one step the one saved last, as the training helper loads it."""
    if save is None or found is None:
        return save or found
    return max(save, found, key=lambda one: (one.saved_at, one.name))


class _Verification:
    """Reads the manifests of sets of ours, as many as one look may."""

    def __init__(self, runtime: Runtime, uri: str, now: int) -> None:
        self._runtime = runtime
        self._uri = uri
        self._now = now
        self._sets = 0
        self._manifests_left = MOST_MANIFESTS

    def judge(self, one: Gathered, most: int) -> tuple[SetSeen, Save | None]:
        """What the set is; its manifests are read if fewer than ``most`` sets had theirs read before."""
        seen = one.seen(self._now)
        if seen.state == "complete":
            return seen, one.save()
        if seen.state != "unverified" or self._sets >= most:
            return seen, None
        self._sets += 1
        return self._verified(one, seen)

    def _verified(self, one: Gathered, seen: SetSeen) -> tuple[SetSeen, Save | None]:
        """By the first world that is whole."""
        for world in worlds_of(one):
            if len(world) > self._manifests_left:
                return _unverified(seen, "it has too many manifests to read them at once"), None
            self._manifests_left -= len(world)
            manifests, seen = self._read(one, seen, world)
            if manifests and (seen := self._compared(one, seen, manifests)).state == "complete":
                save = save_of(one, manifests.values())
                return seen.model_copy(update={"saved_at": save.saved_at}), save
            if seen.state == "unverified":
                break
        return seen, None

    def _read(
        self, one: Gathered, seen: SetSeen, world: tuple[Part, ...]
    ) -> tuple[dict[Part, Manifest], SetSeen]:
        """The manifests of every part, or none and why."""
        found: dict[Part, Manifest] = {}
        for part in world:
            name = f"{part.folder}{MANIFEST}"
            body = self._runtime.checkpoints.read(self._uri, f"{one.name}/{name}", MOST_BYTES)
            if body is None:
                return {}, _unverified(seen, f"{name} is gone, or too large to be read")
            manifest = parse(body)
            why = fault(manifest, one.step, part, self._now) if manifest else f"{name} is no manifest"
            if why or not manifest:
                return {}, _unfit(seen, why or "")
            found[part] = manifest
        return found, seen

    def _compared(self, one: Gathered, seen: SetSeen, manifests: dict[Part, Manifest]) -> SetSeen:
        """Is each file that they name there with its size?"""
        missing = files_of(manifests)
        pages = self._runtime.checkpoints.pages(inside(self._uri, f"{one.name}/"))
        for page in islice(pages, MOST_FOLDER_PAGES):
            for each in page:
                if missing.get(each.key) == each.size:
                    del missing[each.key]
            if not missing:
                return seen.model_copy(update={"state": "complete", "why": None})
        if next(pages, None) is not None:
            return _unverified(seen, "it has too many files to compare them at once")
        return _unfit(seen, f"{len(missing)} files are missing or of another size, {min(missing)} among them")


def _unverified(seen: SetSeen, why: str) -> SetSeen:
    return seen.model_copy(update={"state": "unverified", "why": why})


def _unfit(seen: SetSeen, why: str) -> SetSeen:
    state = "distrusted" if why == FUTURE else "incomplete"
    return seen.model_copy(update={"state": state, "why": why})
