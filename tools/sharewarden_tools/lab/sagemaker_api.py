"""Operations on training jobs: describe, stop, list. They start only through Batch."""

from __future__ import annotations

import base64
from collections.abc import Callable

from .errors import ApiError
from .model import State, TrainingJob
from .training import TrainingService
from .views import training_detail, training_summary
from .world import Json

_SORT_KEYS: dict[str, Callable[[TrainingJob], tuple[str, int]]] = {
    "Name": lambda training: (training.name, training.serial),
    "CreationTime": lambda training: ("", training.serial),
    "Status": lambda training: (training.status, training.serial),
}


class SageMakerApi:
    def __init__(self, state: State, trainings: TrainingService) -> None:
        self._state = state
        self._trainings = trainings

    def operations(self) -> dict[str, Callable[[Json], Json]]:
        return {
            "DescribeTrainingJob": self.describe,
            "StopTrainingJob": self.stop,
            "ListTrainingJobs": self.list_jobs,
        }

    def describe(self, params: Json) -> Json:
        return training_detail(self._find(params))

    def stop(self, params: Json) -> Json:
        """By hand, so a job of Batch becomes FAILED; an ended job gives ValidationException."""
        training = self._find(params)
        if training.ended:
            raise ApiError("ValidationException", f"The training job is {training.status}, not InProgress.")
        self._trainings.stop(training)
        return {}

    def list_jobs(self, params: Json) -> Json:
        """Ten a page by default, newest first (API_ListTrainingJobs)."""
        key = _SORT_KEYS[params.get("SortBy", "CreationTime")]
        found = [t for t in self._state.trainings.values() if _passes(t, params)]
        found.sort(key=key, reverse=params.get("SortOrder", "Descending") == "Descending")
        start, size = _offset(params.get("NextToken")), params.get("MaxResults") or 10
        answer: Json = {"TrainingJobSummaries": [training_summary(t) for t in found[start : start + size]]}
        if len(found) > start + size:
            answer["NextToken"] = base64.urlsafe_b64encode(str(start + size).encode()).decode()
        return answer

    def _find(self, params: Json) -> TrainingJob:
        training = self._state.trainings.get(params.get("TrainingJobName", ""))
        if training is None:
            raise ApiError("ResourceNotFound", "Requested resource not found.")
        return training


def _passes(training: TrainingJob, params: Json) -> bool:
    return (
        params.get("StatusEquals") in (None, training.status)
        and params.get("NameContains", "").lower() in training.name.lower()
        and _between(training.created_at, params, "CreationTime")
        and _between(training.modified_at, params, "LastModifiedTime")
    )


def _between(ms: int, params: Json, name: str) -> bool:
    seconds = ms / 1000
    after, before = params.get(f"{name}After"), params.get(f"{name}Before")
    return (after is None or seconds > after) and (before is None or seconds < before)


def _offset(token: str | None) -> int:
    try:
        return int(base64.urlsafe_b64decode(token or "MA=="))
    except ValueError:
        raise ApiError("ValidationException", "NextToken is not valid.") from None
