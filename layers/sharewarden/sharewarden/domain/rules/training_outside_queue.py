"""A training job uses instance types of the pool and was started around its queue."""

from typing import ClassVar, Literal

from .base import Fires, Guardrail, Scope, Unknown, Verdict, counted
from .facts import TrainingFacts


class Rule(Guardrail):
    """Instance types of the pool are used through its queue alone."""

    scope: ClassVar[Scope] = "training"
    acts: ClassVar[bool] = False

    rule: Literal["training-outside-queue"]

    def decide_training(self, facts: TrainingFacts) -> Verdict:
        unit = facts.instance_type
        if unit is None:
            return Unknown(what="training.instance_type")
        if unit not in facts.pool_types:
            return None
        used = unit if facts.instances is None else f"{counted(facts.instances, 'instance')} of {unit}"
        return Fires(
            text=f"training job {facts.name} uses {used} around the queue, a type that the pool shares:"
            " submit it to the queue instead",
            figures={"instance_type": unit, "instances": facts.instances, "gpus": facts.gpus},
        )
