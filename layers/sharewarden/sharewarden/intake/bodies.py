"""The body of a message on one of our own queues."""

from typing import TypeVar

from pydantic import ValidationError

from sharewarden.domain.base import Frozen
from sharewarden.messages import Poison

M = TypeVar("M", bound=Frozen)


def read(kind: type[M], body: str, name: str) -> M:
    """The JSON text as what it should be, called ``name`` in the reason of a dead letter. Raises Poison."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise Poison(f"not a {name}: {error.errors(include_url=False, include_input=False)}") from error
