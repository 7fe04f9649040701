"""A job asks for an instance type that is not meant for it."""

from typing import Literal

from pydantic import Field

from .base import Fires, Guardrail, Listed, Unknown, Verdict, any_matches
from .facts import Facts


class Rule(Guardrail):
    """Only these instance types, or patterns of them such as ``ml.g6e.*``."""

    rule: Literal["allowed-instance-types"]
    types: Listed = Field(min_length=1)

    def decide(self, facts: Facts) -> Verdict:
        asked = facts.job.instance_type
        if asked is None:
            return Unknown(what="job.instance_type")
        if any_matches(self.types, asked):
            return None
        return Fires(
            text=f"asks for {asked}, and only {', '.join(self.types)} may be used here",
            figures={"instance_type": asked, "types": list(self.types)},
        )
