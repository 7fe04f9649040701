"""Events from EventBridge, for ``react``."""

import json

from sharewarden.domain.base import well_formed
from sharewarden.events import BadEvent, observe
from sharewarden.messages import Poison, rules_failed
from sharewarden.ports import Runtime
from sharewarden.usecases.react import Reaction, react


def take_in(runtime: Runtime, body: str) -> Reaction:
    """One EventBridge event as JSON text. Raises Poison for what can never be read, Unavailable."""
    try:
        seen = observe(well_formed(json.loads(body)))
    except (ValueError, RecursionError, BadEvent) as error:
        raise Poison(f"not an event: {error}") from error
    reaction = react(runtime, seen) if seen is not None else Reaction("ignored")
    if reaction.failed_rules:
        rules_failed(reaction.failed_rules)
    return reaction
