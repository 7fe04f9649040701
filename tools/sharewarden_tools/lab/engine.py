"""The lab: AWS Batch quota management for SageMaker Training jobs, in one process.

    lab = Lab(clock=VirtualClock(1_789_372_800_000), seed=7)
    lab.operations["batch"]["SubmitServiceJob"]({...})
    lab.advance_to(...)

Parameters and results have the shapes of botocore's service models; times are epoch milliseconds in Batch
and epoch seconds in SageMaker. Not thread-safe: a server holds a lock around every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from . import events
from .clock import Clock
from .errors import ApiError
from .jobs_api import JobsApi
from .lifecycle import Lifecycle
from .model import State
from .objects import MemoryObjects, ObjectStore
from .options import Options
from .pools_api import PoolsApi
from .registry import Registry
from .sagemaker_api import SageMakerApi
from .shares_api import SharesApi
from .training import TrainingService
from .world import Json, Listener, World

Operation = Callable[[Json], Json]
DEFAULTS = Options()
_READS = ("Describe", "List", "Get")


class Lab:
    """One account and Region with Batch, SageMaker and the event bus between them."""

    operations: Mapping[str, Mapping[str, Operation]]

    def __init__(
        self,
        *,
        clock: Clock,
        options: Options = DEFAULTS,
        seed: int = 0,
        account: str = "123456789012",
        region: str = "us-east-1",
        objects: ObjectStore | None = None,
    ) -> None:
        self.objects = MemoryObjects() if objects is None else objects
        self._world = World(clock, options, seed, account, region)
        self._principal = options.principal
        state = State()
        self._trainings = TrainingService(self._world, state, self.objects)
        lifecycle = Lifecycle(self._world, state, self._trainings)
        registry = Registry(self._world, state)
        batch: dict[str, Operation] = {}
        for api in (PoolsApi, SharesApi, JobsApi):
            batch.update(api(self._world, registry, lifecycle).operations())
        sagemaker = SageMakerApi(state, self._trainings).operations()
        self.operations = {
            "batch": {name: self._batch_call(name, call) for name, call in batch.items()},
            "sagemaker": {name: self._settled(call) for name, call in sagemaker.items()},
        }
        self.state = state

    def now(self) -> int:
        return self._world.now()

    def subscribe(self, listener: Listener) -> None:
        """Hear every event, as the full EventBridge envelope, when the change behind it is complete."""
        self._world.subscribe(listener)

    def advance_to(self, now_ms: int) -> None:
        """Run all timers due up to `now_ms` in order; a virtual clock moves along with them."""
        while timer := self._world.timers.pop_due(now_ms):
            self._world.clock.advance_to(timer.due_at)
            timer.action()
            self._world.flush()
        self._world.clock.advance_to(now_ms)

    def next_due(self) -> int | None:
        """When the next timer is due; None when nothing will happen by itself."""
        return self._world.timers.next_due()

    def run_until_idle(self, limit_ms: int) -> None:
        """Run timers until none is left, or none before `limit_ms`."""
        while (due := self.next_due()) is not None and due <= limit_ms:
            self.advance_to(due)

    def fail_for_capacity(self, count: int = 1) -> None:
        """Let the next `count` training jobs find no instances (CapacityError)."""
        self._trainings.fail_for_capacity(count)

    @contextmanager
    def acting_as(self, principal: str) -> Iterator[None]:
        """Calls inside the block are made by this principal, an IAM or STS ARN, as CloudTrail sees it."""
        before, self._principal = self._principal, principal
        try:
            yield
        finally:
            self._principal = before

    def _settled(self, call: Operation) -> Operation:
        """Bring the lab up to the clock before the call, and send what the call caused after it."""

        def operation(params: Json) -> Json:
            self.advance_to(self.now())
            try:
                return call(params)
            finally:
                self._world.flush()

        return operation

    def _batch_call(self, name: str, call: Operation) -> Operation:
        if name.startswith(_READS):
            return self._settled(call)
        return self._settled(lambda params: self._recorded(name, call, params))

    def _recorded(self, name: str, call: Operation, params: Json) -> Json:
        """A write call leaves a trace in CloudTrail, also when it fails."""
        try:
            result = call(params)
        except ApiError as error:
            self._trace(name, params, None, (error.code, error.message))
            raise
        self._trace(name, params, result, None)
        return result

    def _trace(self, name: str, params: Json, result: Json | None, error: tuple[str, str] | None) -> None:
        if self._world.options.cloudtrail:
            call = events.ApiCall(name, self._principal, params, result, error)
            events.api_call(self._world, call)
