"""One deployment a module; every test finds its pool empty and leaves it so."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sharewarden_tools.emulator.deployed import Deployed, Setup, deployed
from sharewarden_tools.lab.delivery import NO_FAULTS
from sharewarden_tools.lab.wire import no_faults
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import create_pool

from tests.e2e.deployed.kit import SECONDS, Pool

HERE = Path(__file__).parent
#: So soon does a message that failed come again; the template says minutes. A wish may have to wait two
#: minutes for a value whose answer was lost, and is given up at the tenth try.
AGAIN_AFTER_SECONDS = {"EventsQueueUrl": "2", "WishesQueueUrl": "20"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("deployed")


@pytest.fixture(scope="module")
def stack() -> Iterator[Deployed]:
    with deployed(Setup(options=SECONDS, policy=load_policy())) as running:
        create_pool(running)
        for queue, seconds in AGAIN_AFTER_SECONDS.items():
            running.client("sqs").set_queue_attributes(
                QueueUrl=running.outputs[queue], Attributes={"VisibilityTimeout": seconds}
            )
        yield running


@pytest.fixture
def pool(stack: Deployed) -> Iterator[Pool]:
    pool = Pool(stack)
    yield pool
    stack.delivery.faults = NO_FAULTS
    stack.server.wire.faults = no_faults
    pool.settle_down()
    assert pool.dead_letters() == []
