"""Quota shares as ListQuotaShares tells them, of instances of one type."""

from typing import Any

from sharewarden.domain.observation import ShareDescription

UNIT = "ml.g5.xlarge"


def lending(name: str, queue: str, limit: int, **more: Any) -> ShareDescription:
    """A share that lends and borrows without a limit, with in-share preemption."""
    known = ShareDescription(
        arn=f"{queue}/quota-share/{name}",
        name=name,
        queue=queue,
        limits=((UNIT, limit),),
        strategy="LEND_AND_BORROW",
        borrow_limit=-1,
        in_share_preemption=True,
    )
    return known.model_copy(update=more)
