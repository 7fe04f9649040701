"""What every fact of the domain shares."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class Frozen(BaseModel):
    """An immutable value: unknown members are an error, so a renamed one cannot vanish unseen."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def shown(name: str) -> str:
    """The name. Raises ValueError when a person could not see all of it."""
    if not name.isprintable() or name != name.strip():
        raise ValueError(f"{name!a} has characters that do not show, or spaces at its ends: remove them")
    return name


Name = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(shown)]
"""What people call something in a policy, no longer than a tag's value. It stands in keys and in lists."""

#: How what belongs to no team is called, in texts and in the keys of what is found of all of it.
NO_TEAM = "(no team)"
#: Bytes of a reason that lists keep: hundreds of them share one item of DynamoDB, which ends at 400 KB.
KEPT_REASON = 200
#: Bytes of a reason that stands alone.
LONG_REASON = 4000


def shortened(reason: str | None, most: int = KEPT_REASON) -> str | None:
    """The beginning of a reason: at most so many bytes in the JSON text that is stored."""
    if reason is None:
        return None
    kept = reason[:most]
    while (over := len(json.dumps(kept, ensure_ascii=False).encode()) - 2 - most) > 0:
        kept = kept[: -max(1, over // 6)]  # no character takes more than six
    return kept


def well_formed(parsed: Any) -> Any:
    """JSON values with a question mark for each lone surrogate: JSON can have them, UTF-8 can not."""
    text = json.dumps(parsed, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode(errors="replace"))
    return parsed


def last_part(arn: str) -> str:
    """The key of a job or training job: what follows the last slash of its ARN (or the text itself).

    In AWS's samples the id in a job's ARN differs from its ``jobId``, and preemption events carry
    the ARN alone, so nothing else may serve as the key.
    """
    return arn.rsplit("/", 1)[-1]


def in_same_account(arn: str, others: Iterable[str]) -> bool:
    """True when ``arn`` is of the partition, service, Region and account of one of ``others``."""
    return any(arn.split(":")[:5] == other.split(":")[:5] for other in others)
