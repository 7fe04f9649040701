"""SageMaker training jobs: life cycle, checkpoints, and the events that SageMaker sends.

The lab trains nothing; it counts training time. What a job does stands in its HyperParameters, Environment
or tags, in this order of weight (upper case and underscores work too):
`sharewarden-lab-runtime-seconds`, `-checkpoint-seconds`, `-outcome` (`succeed` or `fail`);
`-save-request-seconds`: how often it looks for save requests, as the training helper does (every 15 seconds);
without it, never; `-load-seconds`: how long it loads a checkpoint before it goes on from there; and
`-stop-save-seconds`: it saves on SIGTERM, which takes so long and succeeds within the stop limit only.
"""

from __future__ import annotations

from collections.abc import Callable

from botocore.model import Shape

from .checkpoints import acknowledge, newest_step, requested, save
from .errors import ApiError
from .model import Course, State, Tags, TrainingJob
from .objects import ObjectStore
from .options import Options
from .shapes import problems, readable, service_model
from .views import training_event
from .world import Json, World

CAPACITY_ERROR = (
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type."
)
ALGORITHM_ERROR = "AlgorithmError: ExecuteUserScriptError: ExitCode 1"
MAX_RUNTIME_S = 86_400
STOP_LIMIT_MS = 120_000  # from SIGTERM to SIGKILL (API_StopTrainingJob)
MAX_REASON = 1024  # characters, as of FailureReason
PREFIX = "sharewarden-lab-"
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
        self._request_shape = service_model("sagemaker").shape_for("CreateTrainingJobRequest")
        self._serial = 0
        self._capacity_failures = 0
        self.on_change: Callable[[TrainingJob], None] = lambda _: None
        self.on_save: Callable[[TrainingJob], None] = lambda _: None

    def fail_for_capacity(self, count: int) -> None:
        """Let the next `count` training jobs end with CapacityError instead of starting."""
        self._capacity_failures += count

    def create(self, owner: str, payload: Json, tags: Tags) -> TrainingJob:
        """Start a training job for service job `owner`; ApiError when SageMaker would refuse it."""
        options, now = self._world.options, self._world.now()
        payload = accepted(payload, self._request_shape)
        course = course_of(payload, tags, options, self._world.draw(options.runtime_ms, f"{owner}/runtime"))
        name = training_name(str(payload["TrainingJobName"]), self._world.uuid("training").replace("-", ""))
        self._serial += 1
        arn = self._world.arn("sagemaker", f"training-job/{name}")
        training = TrainingJob(name, arn, owner, payload, tags, course, self._serial, now, now)
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
        saving = self._save_at_stop(training)
        training.status = "Stopping"
        self._enter(training, "Stopping")
        self._wait(training, "stop_ms", lambda: self._end(training, "Stopped", final), saving)

    def _save_at_stop(self, training: TrainingJob) -> int:
        """How long the job is busy with a save, which is in vain when SIGKILL comes before its end."""
        takes = training.course.stop_save_ms
        if takes is None or training.secondary != "Training":
            return 0
        if takes <= STOP_LIMIT_MS:
            self._save(training)
        return min(takes, STOP_LIMIT_MS)

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
        folder = training.course.checkpoints
        step = newest_step(self._objects, folder) if folder else 0
        training.resumed_from = step or None
        training.progress_at += training.course.load_ms if step else 0
        training.progress_ms = training.saved_ms = 1000 * step
        training.looks_at = self._world.now() + (training.course.look_every_ms or 0)
        self._enter(training, "Training")
        self._train_on(training)

    def _train_on(self, training: TrainingJob) -> None:
        """Sleep until the next save, look or the end, whichever comes first."""
        course, done = training.course, training.progress_ms
        loading = training.progress_at - self._world.now()
        ahead = [
            (loading + max(0, course.runtime_ms - done), self._finish),
            (self._time_left(training), self._exceed),
        ]
        if course.checkpoints:
            ahead.append((loading + training.saved_ms + course.save_every_ms - done, self._checkpoint))
        if course.checkpoints and course.look_every_ms is not None:
            ahead.append((max(0, training.looks_at - self._world.now()), self._look))
        delay, action = min(ahead, key=lambda entry: entry[0])
        training.timer = self._world.after(delay, lambda: action(training))

    def _checkpoint(self, training: TrainingJob) -> None:
        self._note_progress(training)
        self._save(training)
        self._train_on(training)

    def _look(self, training: TrainingJob) -> None:
        """Save and say so, if that is asked for."""
        self._note_progress(training)
        now, folder = self._world.now(), training.course.checkpoints or ""
        training.looks_at = now + (training.course.look_every_ms or 0)
        request = requested(self._objects, folder, training.name)
        if request is not None and request.deadline > now and request.id != training.answered:
            told = {"step": training.progress_ms // 1000, "saved_at": now, "set": self._save(training)}
            acknowledge(self._objects, folder, training.name, request, told)
            training.answered = request.id
        self._train_on(training)

    def _exceed(self, training: TrainingJob) -> None:
        self.stop(training, "MaxRuntimeExceeded")

    def _finish(self, training: TrainingJob) -> None:
        self._note_progress(training)
        if training.course.fails:
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

    def _wait(
        self, training: TrainingJob, option: str, action: Callable[[], None], at_least_ms: int = 0
    ) -> None:
        delay = self._world.draw(getattr(self._world.options, option), f"{training.owner}/{option}")
        training.timer = self._world.after(max(delay, at_least_ms), action)

    # Progress and checkpoints.

    def _time_left(self, training: TrainingJob) -> int:
        """Until MaxRuntimeInSeconds, which counts per training job, runs out."""
        started = training.progress_at if training.started_at is None else training.started_at
        return training.course.max_runtime_ms - (self._world.now() - started)

    def _note_progress(self, training: TrainingJob) -> None:
        now = self._world.now()
        if training.secondary == "Training" and now > training.progress_at:
            training.progress_ms += now - training.progress_at
            training.progress_at = now

    def _save(self, training: TrainingJob) -> str | None:
        """The name of the set; None for a job that saves nothing."""
        folder = training.course.checkpoints
        if folder is None:
            return None
        training.saved_ms, training.saved_at = training.progress_ms, self._world.now()
        step = training.progress_ms // 1000
        name = save(self._objects, folder, step, self._world.now(), training.name, training.resumed_from)
        self.on_save(training)
        return name


def accepted(payload: Json, shape: Shape) -> Json:
    """The request as SageMaker reads it, with the default run time (API_StoppingCondition).

    Raises ApiError (ValidationException) for what the model of CreateTrainingJob forbids.
    """
    request = readable(payload, shape)
    try:
        found = problems(request, shape)
    except RecursionError:
        found = ["a value is nested too deeply"]
    if found:
        text = f"{len(found)} validation error(s) detected: {'; '.join(found)}"
        raise ApiError("ValidationException", text[:MAX_REASON])
    condition = {"MaxRuntimeInSeconds": MAX_RUNTIME_S, **request.get("StoppingCondition", {})}
    return {**request, "StoppingCondition": condition}


def course_of(payload: Json, tags: Tags, options: Options, runtime_ms: int) -> Course:
    """Read what the job says about itself; `runtime_ms` is for a job that says nothing.

    Raises ApiError when a setting is no number.
    """
    said = settings(payload, tags)
    folder = payload.get("CheckpointConfig", {}).get("S3Uri")
    try:
        return Course(
            runtime_ms=_milliseconds(said.get("runtime-seconds"), runtime_ms),
            max_runtime_ms=1000 * int(payload["StoppingCondition"]["MaxRuntimeInSeconds"]),
            fails=said.get("outcome") == "fail",
            checkpoints=f"{folder.rstrip('/')}/" if folder else None,
            save_every_ms=max(
                1000, _milliseconds(said.get("checkpoint-seconds"), options.checkpoint_interval_ms)
            ),
            look_every_ms=_positive(said.get("save-request-seconds")),
            load_ms=_milliseconds(said.get("load-seconds"), 0),
            stop_save_ms=_stop_save(said.get("stop-save-seconds"), options),
        )
    except (ValueError, OverflowError) as error:
        raise ApiError("ValidationException", f"1 validation error detected: {error}") from None


def settings(payload: Json, tags: Tags) -> dict[str, str]:
    """The job's own `sharewarden-lab-` settings, without the prefix; hyperparameters weigh most."""
    sources = (tags, payload.get("Environment", {}), payload.get("HyperParameters", {}))
    entries = ((_plain(key), str(value)) for source in sources for key, value in source.items())
    return {key.removeprefix(PREFIX): _unquoted(value) for key, value in entries if key.startswith(PREFIX)}


def training_name(name: str, suffix: str) -> str:
    """AWSBatch, the payload's name, 32 hex digits; SageMaker allows 63 characters, so long names are cut."""
    return f"AWSBatch{name[: 63 - 8 - len(suffix)]}{suffix}"


def _milliseconds(seconds: str | None, default_ms: int) -> int:
    return default_ms if seconds is None else round(1000 * float(seconds))


def _positive(seconds: str | None) -> int | None:
    return None if seconds is None else max(1000, _milliseconds(seconds, 0))


def _stop_save(seconds: str | None, options: Options) -> int | None:
    if seconds is None:
        return 0 if options.saves_on_sigterm else None
    return max(0, _milliseconds(seconds, 0))


def _plain(key: str) -> str:
    return key.lower().replace("_", "-")


def _unquoted(value: str) -> str:
    """The SageMaker SDK writes hyperparameters as JSON, so that a string arrives with quotes."""
    return value.strip('"')
