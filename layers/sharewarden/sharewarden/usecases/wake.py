"""Ask ``apply`` to look at a job."""

from sharewarden.domain.record import JobRecord
from sharewarden.domain.resubmission import find_open_resubmission
from sharewarden.domain.termination import find_open
from sharewarden.ports import Runtime


def wake(runtime: Runtime, record: JobRecord, again: str = "") -> None:
    """Send the record's open wish to ``apply``, once; another ``again`` makes it a new message.

    Raises Unavailable: the wish is committed already, so the sweep will bring it back.
    """
    wish = record.priority.wish
    if wish is not None:
        runtime.wishes.send(record.job, wish.version, f"{record.job}#v{wish.version}#{again}")


def wake_act(runtime: Runtime, record: JobRecord, act: str, again: str) -> None:
    """The same for a termination or a resubmission, if it is still wanted. Raises Unavailable."""
    if find_open(record.terminations, act) or find_open_resubmission(record.resubmission, act):
        runtime.wishes.send(record.job, act, f"{record.job}#t{act}#{again}")
