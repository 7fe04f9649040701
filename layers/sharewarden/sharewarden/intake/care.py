"""Steps of the preemption workflow, for ``care``: each is loaded when it is first taken."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

from sharewarden.domain.base import Frozen
from sharewarden.messages import logger
from sharewarden.ports import Runtime
from sharewarden.usecases.care.frame import Step, take

StepName = Literal[
    "note", "find", "outcome", "pin", "measure", "preemptor", "resumed", "resubmit", "close", "give_up"
]


class StepRequest(Frozen):
    """What the workflow hands over: a step, and the case by its attempt (ARN of a training job)."""

    step: StepName
    attempt: str
    job: str
    generation: int


def take_care(runtime: Runtime, event: Mapping[str, Any]) -> dict[str, Any]:
    """Take one step; the answer is what the workflow goes by.

    Raises pydantic's ValidationError, KeyError without a case, and Unavailable: the workflow tries again.
    """
    request = StepRequest.model_validate(event)
    answer = take(runtime, request.attempt, step_named(request.step))
    logger.info(
        "took a step", step=request.step, job=request.job, attempt=request.attempt, **answer._asdict()
    )
    return answer._asdict()


def step_named(name: StepName) -> Step:
    """The function of that name in the module of that name (``usecases/care``)."""
    step: Step = getattr(import_module(f"sharewarden.usecases.care.{name}"), name)
    return step
