"""A rule of the policy's own: an expression in CEL over the same facts that the built-in rules see."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from sharewarden.domain.expressions import expression
from sharewarden.domain.periods import Period

from .base import Fires, Guardrail, Label, Scope, Unknown, Verdict
from .facts import Facts


class Rule(Guardrail):
    """Fires when the expression ``when`` is true; ``text`` is what people are told then."""

    scope: ClassVar[Scope] = "job"

    rule: Literal["custom"]
    name: Label = Field(min_length=1)
    when: str
    text: str = Field(default="", max_length=1000)

    @field_validator("when")
    @classmethod
    def _can_work(cls, when: str) -> str:
        expression(when)
        return when

    @property
    def needs_pool(self) -> bool:  # type: ignore[override]  # the others know it of the class, this one of its text
        """Whether the expression reads what only a look at the whole queue shows."""
        return expression(self.when).needs_pool

    @property
    def gpu_periods(self) -> tuple[Period, ...]:
        return expression(self.when).gpu_periods

    def decide(self, facts: Facts) -> Verdict:
        word = expression(self.when).holds(facts)
        if isinstance(word, Unknown):
            return word
        if not word:
            return None
        figures = expression(self.when).figures(facts)
        return Fires(text=self.text or f"is what {self.name} looks for: {self.when}", figures=figures)
