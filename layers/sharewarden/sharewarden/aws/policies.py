"""The policy in force, from the State table."""

import logging
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sharewarden.aws.errors import asking
from sharewarden.domain.policy import Policy
from sharewarden.domain.stored import MINUTE
from sharewarden.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger(__name__)

#: Where the policy lies; its JSON text is in the attribute ``doc``.
KEY = {"pk": {"S": "POLICY"}, "sk": {"S": "CURRENT"}}
CACHED = 1 * MINUTE


class DynamoPolicies:
    """Policies. A document that does not load leaves the last good one in force, or the safe defaults.

    When the table cannot be read and the cache is too old, ``current`` raises Unavailable: the pool may have
    been paused meanwhile.
    """

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._policy = Policy()
        self._read_at: int | None = None

    def current(self) -> Policy:
        now = self._clock.now()
        if self._read_at is None or not 0 <= now - self._read_at < CACHED:  # a clock may be set back
            self._policy = self._read()
            self._read_at = now
        return self._policy

    def _read(self) -> Policy:
        with asking("GetItem"):
            answer = self._client.get_item(TableName=self._table, Key=KEY, ConsistentRead=True)
        row = answer.get("Item")
        return Policy() if row is None else self._loaded(row.get("doc", {}).get("S", ""))

    def _loaded(self, doc: str) -> Policy:
        try:
            return Policy.model_validate_json(doc)
        except ValidationError as error:
            logger.error(
                "THE STORED POLICY DOES NOT LOAD; policy %s stays in force: %s", self._policy.hash, error
            )
            return self._policy
