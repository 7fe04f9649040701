"""A stack that is updated, deleted and deployed again goes on with its audit."""

from __future__ import annotations

from sharewarden_tools.emulator.deployed import STACK, Deployed

from tests.e2e.deployed.kit import SECOND, Pool


def test_the_audit_outlives_an_update_and_its_stack(stack: Deployed, pool: Pool) -> None:
    _run_a_job(pool, "background-1")
    before = dict(stack.outputs)

    stack.deploy(LogLevel="DEBUG")
    assert dict(stack.outputs) == before
    assert stack.variables()["LOG_LEVEL"] == "DEBUG"

    cloudformation = stack.client("cloudformation")
    cloudformation.delete_stack(StackName=STACK)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
    stack.deploy(ExistingAuditTable=before["AuditTable"], ExistingAuditStreamArn=before["AuditStreamArn"])
    assert stack.outputs["AuditTable"] == before["AuditTable"]

    again = Pool(stack)
    _run_a_job(again, "background-2")
    again.jobs |= pool.jobs
    assert [len(again.facts(name, "job-ended")) for name in ("background-1", "background-2")] == [1, 1]
    pool.jobs.clear()  # the new stack knows nothing of them


def _run_a_job(pool: Pool, name: str) -> None:
    pool.submit(name, SECOND)
    pool.wait_for("SUCCEEDED", name)
    pool.wait_for_facts(name, "job-ended")
