"""Which saves a preempted attempt left behind: its own and earlier ones, not those of later attempts."""

from collections.abc import Callable

from sharewarden.domain.base import last_part
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.record import JobRecord

from .holding import followers, stay_of, stays


def saved_before_next(record: JobRecord, attempt: str) -> Callable[[Save], bool]:
    """Whether a save was made before another attempt ran after the one given.

    Until that runs, whatever is there was. The stop is no line: the copy to S3 may end some time after it.
    """
    own = stay_of(record, attempt)
    later = [stay for stay in stays(record) if own and stay.attempt != attempt and stay.since >= own.since]
    names = {last_part(stay.attempt) for stay in later if stay.attempt}
    named = followers(record, attempt)
    names |= {last_part(one.training_job) for one in named}
    began = [*(stay.running_at for stay in later), *(one.started_at for one in named)]
    ran_at = min((at for at in began if at is not None), default=None)

    def counts(save: Save) -> bool:
        if save.training_job is not None and save.training_job == last_part(attempt):
            return True
        return save.training_job not in names and (ran_at is None or save.saved_at < ran_at)

    return counts
