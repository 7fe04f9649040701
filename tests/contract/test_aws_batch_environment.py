"""What a queue's service environment holds: two calls, documented answers, none that is guessed."""

from typing import Any

import pytest
from botocore.stub import Stubber
from sharewarden.aws.batch import AwsBatch
from sharewarden.ports import Unavailable

from .test_aws_batch import QUEUE, batch, client, stub

__all__ = ["batch", "client", "stub"]

ENVIRONMENT = "arn:aws:batch:us-east-1:123456789012:service-environment/pool"
LIMITS = [
    {"maxCapacity": 3, "capacityUnit": "ml.g5.xlarge"},
    {"maxCapacity": 2, "capacityUnit": "ml.p5.48xlarge"},
]


def queue(*environments: str) -> dict[str, Any]:
    order = [{"order": n, "serviceEnvironment": one} for n, one in enumerate(environments, 1)]
    told = {"jobQueueName": "q", "jobQueueArn": QUEUE, "state": "ENABLED", "priority": 1}
    return {"jobQueues": [{**told, "computeEnvironmentOrder": [], "serviceEnvironmentOrder": order}]}


def environment(*limits: dict[str, Any]) -> dict[str, Any]:
    told = {"serviceEnvironmentName": "pool", "serviceEnvironmentArn": ENVIRONMENT}
    kind = {"serviceEnvironmentType": "SAGEMAKER_TRAINING", "capacityLimits": list(limits)}
    return {"serviceEnvironments": [{**told, **kind}]}


def asked(stub: Stubber, *environments: str) -> None:
    stub.add_response("describe_job_queues", queue(*environments), {"jobQueues": [QUEUE]})


def test_the_limits_by_instance_type(stub: Stubber, batch: AwsBatch) -> None:
    asked(stub, ENVIRONMENT)
    expected = {"serviceEnvironments": [ENVIRONMENT]}
    stub.add_response("describe_service_environments", environment(*LIMITS), expected)
    assert batch.environment(QUEUE) == {"ml.g5.xlarge": 3, "ml.p5.48xlarge": 2}


@pytest.mark.parametrize("environments", [(), (ENVIRONMENT, f"{ENVIRONMENT}-2")])
def test_law_02_without_exactly_one_environment_it_is_not_told(
    stub: Stubber, batch: AwsBatch, environments: tuple[str, ...]
) -> None:
    asked(stub, *environments)
    assert batch.environment(QUEUE) is None


@pytest.mark.parametrize("answer", [{"jobQueues": []}, {"serviceEnvironments": []}])
def test_law_02_what_is_gone_is_not_told(stub: Stubber, batch: AwsBatch, answer: dict[str, Any]) -> None:
    if "jobQueues" in answer:
        stub.add_response("describe_job_queues", answer)
    else:
        asked(stub, ENVIRONMENT)
        stub.add_response("describe_service_environments", answer)
    assert batch.environment(QUEUE) is None


@pytest.mark.parametrize("operation", ["DescribeJobQueues", "DescribeServiceEnvironments"])
def test_law_02_a_refusal_names_the_call(stub: Stubber, batch: AwsBatch, operation: str) -> None:
    method = "describe_job_queues" if operation == "DescribeJobQueues" else "describe_service_environments"
    if method != "describe_job_queues":
        asked(stub, ENVIRONMENT)
    stub.add_client_error(method, "AccessDeniedException", "no", 400)
    with pytest.raises(Unavailable, match=f"^{operation}: AccessDeniedException: no$"):
        batch.environment(QUEUE)
