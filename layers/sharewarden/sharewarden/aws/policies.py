"""The policy in force, from the State table."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sharewarden.aws.errors import asking
from sharewarden.domain.policy import Policy
from sharewarden.domain.stored import MINUTE
from sharewarden.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger(__name__)

#: Where the policy in force lies; its JSON text is in the attribute ``doc``.
KEY = {"pk": {"S": "POLICY"}, "sk": {"S": "CURRENT"}}
CACHED = 1 * MINUTE
#: How many earlier versions a process looks at for one that loads: each may have some hundred KB.
STEPS_BACK = 10
#: What a document raises that this code cannot take; a rule that it lacks is a ValidationError.
DOES_NOT_LOAD = (ValidationError, ImportError)

Row = Mapping[str, Any]


def version_key(number: int) -> dict[str, Any]:
    """Where a version is kept for good; the keys sort as the numbers do."""
    return {"pk": KEY["pk"], "sk": {"S": f"VERSION#{number:08d}"}}


class DynamoPolicies:
    """Policies. A document that does not load leaves the last good one in force, or the safe defaults.

    A process that has not seen the last good one goes back through the versions for it. ``unloadable`` is
    called each time, for an alarm. That such a document asks to pause is heard all the same: what stops every
    act may not depend on the rest of the file.

    When the table cannot be read and the cache is too old, ``current`` raises Unavailable: the pool may have
    been paused meanwhile.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        clock: Clock,
        unloadable: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._unloadable = unloadable
        self._policy = Policy()
        self._good: Policy | None = None
        self._read_at: int | None = None

    def current(self) -> Policy:
        now = self._clock.now()
        if self._read_at is None or not 0 <= now - self._read_at < CACHED:  # a clock may be set back
            self._policy = self._read()
            self._read_at = now
        return self._policy

    def _read(self) -> Policy:
        row = self._row(KEY)
        if row is None:
            self._good = Policy()
            return self._good
        try:
            self._good = Policy.model_validate_json(_doc(row))
        except DOES_NOT_LOAD as error:
            return self._instead(row, error)
        return self._good

    def _instead(self, row: Row, error: Exception) -> Policy:
        """What is in force while the stored document does not load."""
        self._unloadable()
        if self._good is None:
            self._good = self._last_good(row)
        logger.error("THE STORED POLICY DOES NOT LOAD; policy %s stays in force: %s", self._good.hash, error)
        if not _asks_to_pause(row) or self._good.paused:
            return self._good
        logger.error("it asks to pause, so nothing acts")
        return Policy.model_validate(json.loads(self._good.canonical) | {"paused": True})

    def _last_good(self, row: Row) -> Policy:
        """The newest version before ``row`` that loads, or the safe defaults."""
        earlier: Row | None = row
        for _ in range(STEPS_BACK):
            number = _number_before(earlier)
            if number is None:
                break
            earlier = self._row(version_key(number))
            try:
                return Policy.model_validate_json(_doc(earlier))
            except DOES_NOT_LOAD:
                continue
        return Policy()

    def _row(self, key: Mapping[str, Any]) -> Row | None:
        with asking("GetItem"):
            answer = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return answer.get("Item")


def _doc(row: Row | None) -> str:
    return str((row or {}).get("doc", {}).get("S", ""))


def _number_before(row: Row | None) -> int | None:
    """The version before; None at the beginning, and where somebody has maimed the row."""
    try:
        return int((row or {})["previous"]["N"])
    except (LookupError, TypeError, ValueError):
        return None


def _asks_to_pause(row: Row) -> bool:
    try:
        document = json.loads(_doc(row))
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("paused") is True
