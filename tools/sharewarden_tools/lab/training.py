"""SageMaker training jobs: life cycle, checkpoints, and the events that SageMaker sends.

The lab trains nothing; it counts training time. What a job does stands in its HyperParameters, Environment
or tags, in this order of weight (upper case and underscores work too):
`sharewarden-lab-runtime-seconds`, `-checkpoint-seconds`, `-outcome` (`succeed` or `fail`).
"""

from __future__ import annotations

import json
from collections.abc import Callable

from .checkpoints import newest_step, save
from .errors import ApiError
from .model import State, Tags, TrainingJob
from .objects import ObjectStore
from .views import training_event
from .world import Json, World

REQUIRED = ("TrainingJobName", "RoleArn", "OutputDataConfig")
STRUCTURES = ("OutputDataConfig", "CheckpointConfig", "StoppingCondition", "HyperParameters", "Environment")
CAPACITY_ERROR = (
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type."
)
ALGORITHM_ERROR = "AlgorithmError: ExecuteUserScriptError: ExitCode 1"
MAX_RUNTIME_MS = 86_400_000  # StoppingCondition default, API_StoppingCondition
_MESSAGES = {
    "Pending": "Preparing the instances for training",
    "Downloading": "Downloading the training image",
    "Training": "Training image download completed. Training in progress.",
    "Uploading": "Uploading generated training model",
    "Stopping": "Stopping the training job",
    "Completed": "Training job completed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
}


class TrainingService:
    """The part of SageMaker that Batch uses. `on_change` hears of every change of status."""

    def __init__(self, world: World, state: State, objects: ObjectStore) -> None:
        self._world = world
        self._trainings = state.trainings
        self._objects = objects
        self._serial = 0
        self._capacity_failures = 0
        self.on_change: Callable[[TrainingJob], None] = lambda _: None
        self.on_save: Callable[[TrainingJob], None] = lambda _: None

    def fail_for_capacity(self, count: int) -> None:
        """Let the next `count` training jobs end with CapacityError instead of starting."""
        self._capacity_failures += count

    def create(self, owner: str, payload: Json, tags: Tags) -> TrainingJob:
        """Start a training job for service job `owner`; ApiError when SageMaker would refuse it."""
        _check_request(payload)
        now = self._world.now()
        name = training_name(str(payload["TrainingJobName"]), self._world.uuid("training").replace("-", ""))
        self._serial += 1
        arn = self._world.arn("sagemaker", f"training-job/{name}")
        training = TrainingJob(name, arn, owner, payload, tags, self._serial, created_at=now, modified_at=now)
        self._trainings[name] = training
        self._enter(training, "Pending")
        self._wait(training, "pending_ms", lambda: self._acquire(training))
        return training

    def delete(self, training: TrainingJob) -> None:
        self._trainings.pop(training.name, None)

    def stop(self, training: TrainingJob, final: str = "Stopped") -> None:
        """StopTrainingJob: SIGTERM now, Stopped when the container is gone (at most 120 s later)."""
        if training.ended or training.status == "Stopping":
            return
        if training.timer:
            training.timer.cancel()
        self._note_progress(training)
        if self._world.options.saves_on_sigterm and training.secondary == "Training":
            self._save(training)
        training.status = "Stopping"
        self._enter(training, "Stopping")
        self._wait(training, "stop_ms", lambda: self._end(training, "Stopped", final))

    # From Pending to Completed.

    def _acquire(self, training: TrainingJob) -> None:
        if self._lacks_capacity(training):
            training.failure = CAPACITY_ERROR
            self._end(training, "Failed", "Failed")
            return
        self._enter(training, "Downloading")
        self._wait(training, "downloading_ms", lambda: self._train(training))

    def _lacks_capacity(self, training: TrainingJob) -> bool:
        if self._capacity_failures:
            self._capacity_failures -= 1
            return True
        rate = self._world.options.capacity_failure_rate
        return rate > 0 and self._world.chance(f"{training.name}/capacity") < rate

    def _train(self, training: TrainingJob) -> None:
        training.started_at = training.progress_at = self._world.now()
        uri = checkpoint_uri(training.payload)
        training.progress_ms = training.saved_ms = 1000 * newest_step(self._objects, uri) if uri else 0
        self._enter(training, "Training")
        self._train_on(training)

    def _train_on(self, training: TrainingJob) -> None:
        """Sleep until the next save or the end, whichever comes first."""
        save_at = training.saved_ms + self._save_interval(training)
        finish, limit = self._runtime(training), self._latest_progress(training)
        goal = min(save_at, finish, limit)
        action = self._finish if goal == finish else self._exceed if goal == limit else self._checkpoint
        delay = max(0, int(goal) - training.progress_ms)
        training.timer = self._world.after(delay, lambda: action(training))

    def _checkpoint(self, training: TrainingJob) -> None:
        self._note_progress(training)
        self._save(training)
        self._train_on(training)

    def _exceed(self, training: TrainingJob) -> None:
        self.stop(training, "MaxRuntimeExceeded")

    def _finish(self, training: TrainingJob) -> None:
        self._note_progress(training)
        if setting(training, "outcome") == "fail":
            training.failure = ALGORITHM_ERROR
            self._end(training, "Failed", "Failed")
            return
        self._enter(training, "Uploading")
        self._wait(training, "uploading_ms", lambda: self._end(training, "Completed", "Completed"))

    def _end(self, training: TrainingJob, status: str, secondary: str) -> None:
        training.status = status
        training.ended_at = self._world.now()
        self._enter(training, secondary)

    def _enter(self, training: TrainingJob, secondary: str) -> None:
        """Note the secondary status, tell EventBridge, tell Batch."""
        now = self._world.now()
        training.secondary, training.modified_at = secondary, now
        if training.transitions:
            training.transitions[-1]["EndTime"] = now
        message = training.failure or _MESSAGES.get(secondary, secondary)
        training.transitions.append({"Status": secondary, "StartTime": now, "StatusMessage": message})
        as_strings = self._world.options.sagemaker_times_as_strings
        detail = training_event(training, times_as_strings=as_strings)
        self._world.emit("aws.sagemaker", "SageMaker Training Job State Change", [training.arn], detail)
        self.on_change(training)

    def _wait(self, training: TrainingJob, option: str, action: Callable[[], None]) -> None:
        delay = self._world.draw(getattr(self._world.options, option), f"{training.owner}/{option}")
        training.timer = self._world.after(delay, action)

    # Progress and checkpoints.

    def _runtime(self, training: TrainingJob) -> int:
        seconds = setting(training, "runtime-seconds")
        if seconds is not None:
            return round(float(seconds) * 1000)
        return self._world.draw(self._world.options.runtime_ms, f"{training.owner}/runtime")

    def _latest_progress(self, training: TrainingJob) -> int:
        """Progress at which MaxRuntimeInSeconds, which counts per training job, runs out."""
        seconds = training.payload.get("StoppingCondition", {}).get("MaxRuntimeInSeconds")
        limit = MAX_RUNTIME_MS if seconds is None else 1000 * int(seconds)
        started = training.started_at or 0
        return training.progress_ms + limit - (self._world.now() - started)

    def _save_interval(self, training: TrainingJob) -> float:
        if not checkpoint_uri(training.payload):
            return float("inf")
        seconds = setting(training, "checkpoint-seconds")
        return 1000 * float(seconds) if seconds else self._world.options.checkpoint_interval_ms

    def _note_progress(self, training: TrainingJob) -> None:
        if training.secondary == "Training":
            now = self._world.now()
            training.progress_ms += now - training.progress_at
            training.progress_at = now

    def _save(self, training: TrainingJob) -> None:
        uri = checkpoint_uri(training.payload)
        if not uri:
            return
        training.saved_ms, training.saved_at = training.progress_ms, self._world.now()
        save(self._objects, uri, training.progress_ms // 1000, self._world.now())
        self.on_save(training)


def _check_request(payload: Json) -> None:
    missing = [name for name in REQUIRED if name not in payload]
    broken = [name for name in STRUCTURES if not isinstance(payload.get(name, {}), dict)]
    if missing or broken:
        text = f"1 validation error detected: value at '{(missing + broken)[0]}' failed to satisfy constraint"
        raise ApiError("ValidationException", text)


def training_name(name: str, suffix: str) -> str:
    """AWSBatch, the payload's name, 32 hex digits; SageMaker allows 63 characters, so long names are cut."""
    return f"AWSBatch{name[: 63 - 8 - len(suffix)]}{suffix}"


def checkpoint_uri(payload: Json) -> str | None:
    uri = payload.get("CheckpointConfig", {}).get("S3Uri")
    return f"{uri.rstrip('/')}/" if uri else None


def setting(training: TrainingJob, name: str) -> str | None:
    """What the job says about its own behaviour in the lab."""
    wanted = f"sharewarden-lab-{name}"
    sources = (training.payload.get("HyperParameters"), training.payload.get("Environment"), training.tags)
    for source in sources:
        for key, value in (source or {}).items():
            if key.lower().replace("_", "-") == wanted:
                return _unquoted(str(value))
    return None


def _unquoted(value: str) -> str:
    """The SageMaker SDK writes hyperparameters as JSON, so that a string arrives with quotes."""
    return str(json.loads(value)) if value.startswith('"') else value
