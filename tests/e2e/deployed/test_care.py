"""A preempted attempt in the deployed stack: the state machine of the template takes care of it."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace
from typing import Any

from sharewarden.domain.preemption.case import Case
from sharewarden_tools.emulator.deployed import Deployed
from sharewarden_tools.stories.three_team import submit

from tests.e2e.deployed.kit import SECOND, Pool, until

HOUR = 3600 * SECOND
STEPS = ["Note", "Find", "Outcome", "Pin", "Measure", "Preemptor", "Resubmit", "Resumed", "Close"]


def test_a_preemption_is_taken_care_of_to_the_end(pool: Pool) -> None:
    """Of a job that was not to be requeued: who was behind it is told soonest then, after three minutes."""
    pool.submit("background-1", HOUR)
    pool.wait_for("RUNNING", "background-1")
    pool.jobs["background-2"] = submit(WithoutRetries(pool.stack), "background-2", HOUR)
    pool.wait_for("RUNNING", "background-2")
    pool.submit("medium-1", HOUR)
    pool.wait_for("FAILED", "background-2")
    (preemption,) = pool.wait_for_facts("background-2", "preemption")
    attempt = str(preemption.figures["attempt"])

    execution = until(lambda: ended(pool), bool, seconds=360)
    assert execution is not None
    entered = states_entered(pool, execution["executionArn"])
    assert execution["status"] == "SUCCEEDED", entered
    assert list(dict.fromkeys(name for name in entered if name in STEPS)) == STEPS
    assert entered[-1] == "Closed"
    given = {"attempt": attempt, "job": pool.jobs["background-2"], "generation": 1}
    assert json.loads(execution["input"]) == given
    case = pool.runtime.ledger.load(Case, attempt)
    assert case is not None
    assert (case.outcome, case.measured, case.resubmitted) == ("exhausted", True, True)
    assert case.closed_at is not None
    for kind in ("preemption-measure", "preemptor"):
        assert len(pool.facts("background-2", kind)) == 1


class WithoutRetries:
    """Clients that submit jobs whose first preemption is their end."""

    def __init__(self, stack: Deployed) -> None:
        self._stack = stack

    def client(self, service: str, _user: str) -> Any:
        made = self._stack.client(service)
        never = {"preemptionRetriesBeforeTermination": 0}
        return SimpleNamespace(
            submit_service_job=partial(made.submit_service_job, preemptionConfiguration=never)
        )


def ended(pool: Pool) -> dict[str, Any] | None:
    """The execution of the job's preemption, once it has ended."""
    states = pool.stack.client("stepfunctions")
    machine = pool.stack.outputs["PreemptionStateMachine"]
    for row in states.list_executions(stateMachineArn=machine)["executions"]:
        execution = dict(states.describe_execution(executionArn=row["executionArn"]))
        if execution["status"] != "RUNNING" and pool.jobs["background-2"] in execution["input"]:
            return execution
    return None


def states_entered(pool: Pool, execution: str) -> list[str]:
    states, token = pool.stack.client("stepfunctions"), {}
    names: list[str] = []
    while True:
        page = states.get_execution_history(executionArn=execution, maxResults=1000, **token)
        details = (event.get("stateEnteredEventDetails") for event in page["events"])
        names += [detail["name"] for detail in details if detail]
        if not page.get("nextToken"):
            return names
        token = {"nextToken": page["nextToken"]}
