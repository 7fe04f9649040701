"""The step that pins what the attempt had saved last."""

from sharewarden.domain.checkpoints import Save
from sharewarden.domain.pin_facts import named, unprotected
from sharewarden.domain.pins import Danger
from sharewarden.ports import Denied
from sharewarden.usecases.checkpoints import Looked
from sharewarden.usecases.pins import pin_save

from .find import look
from .frame import Care, Taken


def pin(care: Care) -> Taken:
    """Look once more, since the attempt has stopped by now, and pin what is found.

    A newer save than the case knows is the case's from then on. Raises Unavailable.
    """
    if care.case.pinned or care.record.checkpoint_uri is None or care.case.outcome == "mistaken":
        return _done(care)
    try:
        looked = look(care, care.record.checkpoint_uri)
    except Denied as error:
        known = care.case.sight == "unknown"  # the look before could not tell, either
        care = _doubted(care)
        return _done(care) if known else _done(care, Danger(cause="refused", why=str(error)))
    lost = _lost(care.case.save, looked)
    if looked.save is None:
        return _done(_doubted(care) if looked.partial else care, *lost)
    found = pin_save(care.runtime, care.record, care.case.attempt, looked.save, care.policy, care.now)
    taken = _done(care, *lost)
    seen = {} if lost else {"save": looked.save, "sight": "found"}
    return Taken(
        taken.case.model_copy(update=seen),
        facts=(*taken.facts, *found.facts),
        notices=(*taken.notices, *found.notices),
        beside=(found.pin,) if found.pin else (),
    )


def _doubted(care: Care) -> Care:
    """A first look that found nothing proves nothing when this one, after the stop, could not tell."""
    unseen = care.case.sight == "none"
    return care._replace(case=care.case.model_copy(update={"sight": "unknown"})) if unseen else care


def _lost(known: Save | None, looked: Looked) -> list[Danger]:
    """What the case knew is not there any longer, or cannot be seen."""
    if known is None or (looked.save is not None and not _is_older(looked.save, known)):
        return []
    if looked.partial:
        return [Danger(cause="too-large", why="there is more below its S3Uri than one look takes")]
    return [Danger(cause="gone", why=f"{named(known)} is not there any longer")]


def _is_older(save: Save, known: Save) -> bool:
    if save.step is not None and known.step is not None and save.step != known.step:
        return save.step < known.step
    return save.saved_at < known.saved_at


def _done(care: Care, *dangerous: Danger) -> Taken:
    told = [
        unprotected(care.record, care.case.attempt, danger, care.policy, care.now) for danger in dangerous
    ]
    return Taken(
        care.case.model_copy(update={"pinned": True}),
        facts=tuple(fact for fact, _ in told),
        notices=tuple(notice for _, notice in told),
    )
