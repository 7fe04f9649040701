"""Checkpoints that preemption cannot tear: a set is whole, or it is not there.

``Saver`` says when to save, saves atomically, finds the newest complete set again and deletes old ones. Local
saving needs the standard library alone; boto3 is imported only where save requests are asked for.
"""

from .manifest import Manifest
from .requests import Requests
from .saver import Saver
from .sets import Checkpoint, Shard
from .stop import Stop

__all__ = ["Checkpoint", "Manifest", "Requests", "Saver", "Shard", "Stop"]
