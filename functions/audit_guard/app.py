"""Records of the audit that were changed or removed: the table's stream brings nothing else here."""

from collections.abc import Mapping
from typing import Any

from sharewarden.guard import sound_alarm


def handler(event: Mapping[str, Any], _context: Any) -> None:
    sound_alarm(event)
