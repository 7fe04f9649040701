"""Every operation of the lab exists in botocore's models, and the wire can carry its shapes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.model import ListShape, MapShape, Shape, StructureShape
from sharewarden_tools.lab import sqs
from sharewarden_tools.lab.clock import VirtualClock
from sharewarden_tools.lab.engine import Lab
from sharewarden_tools.lab.queues import QueueSystem
from sharewarden_tools.lab.shapes import service_model

CLOCK = VirtualClock()
SERVED = {**Lab(clock=CLOCK).operations, "sqs": sqs.operations(QueueSystem(CLOCK))}
OPERATIONS = [(service, name) for service, operations in SERVED.items() for name in operations]


def shapes(root: Shape | None, seen: frozenset[str] = frozenset()) -> Iterator[Shape]:
    if root is None or root.name in seen:
        return
    yield root
    inside = seen | {root.name}
    if isinstance(root, StructureShape):
        for member in root.members.values():
            yield from shapes(member, inside)
    elif isinstance(root, ListShape):
        yield from shapes(root.member, inside)
    elif isinstance(root, MapShape):
        yield from shapes(root.key, inside)
        yield from shapes(root.value, inside)


def test_the_lab_has_the_operations_that_the_product_and_its_users_need() -> None:
    assert set(SERVED["batch"]) == {
        "CreateSchedulingPolicy",
        "DescribeSchedulingPolicies",
        "UpdateSchedulingPolicy",
        "DeleteSchedulingPolicy",
        "CreateServiceEnvironment",
        "DescribeServiceEnvironments",
        "UpdateServiceEnvironment",
        "DeleteServiceEnvironment",
        "CreateJobQueue",
        "DescribeJobQueues",
        "UpdateJobQueue",
        "DeleteJobQueue",
        "CreateQuotaShare",
        "DescribeQuotaShare",
        "ListQuotaShares",
        "UpdateQuotaShare",
        "DeleteQuotaShare",
        "SubmitServiceJob",
        "DescribeServiceJob",
        "ListServiceJobs",
        "UpdateServiceJob",
        "TerminateServiceJob",
        "TerminateServiceJobs",
        "GetJobQueueSnapshot",
        "TagResource",
        "UntagResource",
        "ListTagsForResource",
    }
    assert set(SERVED["sagemaker"]) == {"DescribeTrainingJob", "StopTrainingJob", "ListTrainingJobs"}


@pytest.mark.parametrize(("service", "name"), OPERATIONS)
def test_an_operation_is_one_that_the_wire_can_carry(service: str, name: str) -> None:
    """In the model, with members that keep their names on the wire."""
    operation = service_model(service).operation_model(name)
    for shape in (*shapes(operation.input_shape), *shapes(operation.output_shape)):
        if isinstance(shape, StructureShape):
            for member, inner in shape.members.items():
                assert inner.serialization.get("name", member) == member
                assert inner.serialization.get("location") in (None, "uri", "querystring")
