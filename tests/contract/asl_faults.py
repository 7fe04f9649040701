"""Check the definitions in ``statemachines/`` with asl-validator, and the validator with planted faults.

usage: asl_faults.py VALIDATOR

VALIDATOR is the command that npm installs (`make workflows`). That each planted fault is refused shows that a
definition which passes was read at all. What it cannot see is for tests/unit/test_workflows.py.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

DEFINITIONS = sorted((Path(__file__).parents[2] / "statemachines").glob("*.asl.yaml"))
CARE = "arn:aws:lambda:us-east-1:123456789012:function:Care"
States = dict[str, dict[str, Any]]

#: Each changes the states of the preemption workflow in place.
FAULTS: dict[str, Callable[[States], object]] = {
    "a state that is not there": lambda states: states["Note"].update(Next="Nowhere"),
    "a default that is not there": lambda states: states["NoteDone"].update(Default="Nowhere"),
    "a catch that leads nowhere": lambda states: states["Note"]["Catch"][0].update(Next="Nowhere"),
    "a state that nothing leads to": lambda states: states.update(Lost={"Type": "Succeed"}),
    "an unknown type": lambda states: states["Note"].update(Type="Tsak"),
    "a task without a resource": lambda states: states["Note"].pop("Resource"),
    "a task that leads nowhere": lambda states: states["Note"].pop("Next"),
    "a field of JSONPath": lambda states: states["Note"].update(ResultPath="$.x"),
    "a wait without a time": lambda states: states["NoteAgain"].pop("Seconds"),
    "a condition without a next state": lambda states: states["NoteDone"]["Choices"][0].pop("Next"),
    "a retry without errors": lambda states: states["Note"]["Retry"][0].pop("ErrorEquals"),
    "an expression that is none": lambda states: states["NoteAgain"].update(Seconds="{% $max( %}"),
}


def main(validator: str) -> int:
    """0 when every definition passes and every fault is found."""
    wrong = [f"{path.name}: {told}" for path in DEFINITIONS if (told := _told(validator, path.read_text()))]
    text = next(path.read_text() for path in DEFINITIONS if path.name.startswith("preemption"))
    for name, plant in FAULTS.items():
        definition = yaml.safe_load(text)
        plant(definition["States"])
        if not _told(validator, yaml.safe_dump(definition)):
            wrong.append(f"not found: {name}")
    print(
        "\n".join(wrong)
        or f"definitions: {len(DEFINITIONS)}, all well; planted faults: {len(FAULTS)}, all found"
    )
    return 1 if wrong or not DEFINITIONS else 0


def _told(validator: str, text: str) -> str:
    """What the validator finds fault with; nothing when the definition is well."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "definition.asl.yaml"
        path.write_text(text.replace("${Care}", CARE), encoding="utf-8")
        ended = subprocess.run(
            [validator, "--yaml-path", str(path)], capture_output=True, text=True, check=False
        )
    return ended.stdout + ended.stderr if ended.returncode else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
