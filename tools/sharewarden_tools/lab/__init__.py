"""AWS Batch quota management for SageMaker Training, emulated on one machine."""

from .clock import VirtualClock, WallClock
from .engine import Lab
from .errors import ApiError
from .objects import MemoryObjects, ObjectStore
from .options import Options

__all__ = ["ApiError", "Lab", "MemoryObjects", "ObjectStore", "Options", "VirtualClock", "WallClock"]
