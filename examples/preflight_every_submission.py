"""Ask the policy before every submission from this process, whichever SDK makes it.

boto3 tells its listeners of each call before it is sent, and the SageMaker SDK submits through boto3:

    import boto3
    from preflight_every_submission import ask_first

    ask_first(boto3, "policy.yaml")
    TrainingQueue("ml-train-qm").submit(trainer, inputs=None, quota_share_name="background")

A job that could never start, or that a guardrail would change or end, raises Stopped and is not sent.
Findings that only tell are printed.
"""

from typing import Any

from sharewarden_tools import preflight


class Stopped(Exception):
    """The job was not submitted; the text says why."""


def ask_first(boto3: Any, policy: str) -> None:
    """From now on each SubmitServiceJob of boto3's default session is looked at before it is sent."""
    boto3.setup_default_session()

    def look(params: dict[str, Any], **_: Any) -> None:
        pages = boto3.client("batch").get_paginator("list_quota_shares")
        shares = pages.paginate(jobQueue=params["jobQueue"]).build_full_result()
        report = preflight(params, policy=policy, shares=shares)
        if report.blocks:
            raise Stopped(str(report))
        print(report)

    boto3.DEFAULT_SESSION.events.register("provide-client-params.batch.SubmitServiceJob", look)
