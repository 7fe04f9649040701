"""What keeps AWS from answering becomes ``Unavailable``: unknown is not failed (design law 2)."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from pydantic import ValidationError

from sharewarden.ports import Unavailable


@contextmanager
def asking(operation: str) -> Iterator[None]:
    """One call to AWS and the reading of its answer; raises Unavailable, which names operation and cause.

    A refusal (throttled, not authorised, expired credentials), a broken connection, a time-out and an answer
    without what it must hold are alike: nothing is known. A request that botocore itself finds malformed is a
    bug of ours and stays ParamValidationError.
    """
    try:
        yield
    except ParamValidationError:
        raise
    except ClientError as error:
        raise Unavailable(f"{operation}: {code(error)}: {message(error)}") from error
    except BotoCoreError as error:
        raise Unavailable(f"{operation}: {type(error).__name__}: {error}") from error
    except (KeyError, ValidationError) as error:
        raise Unavailable(f"{operation}: the answer makes no sense: {error!r}") from error


def refuse_malformed(error: ClientError) -> None:
    """Raises ValueError when DynamoDB finds fault with what it was to store: trying again changes nothing."""
    if code(error) == "ValidationException":
        raise ValueError(f"DynamoDB does not take it: {message(error)}") from error


def code(error: ClientError) -> str:
    """The error code that the service gave."""
    return error.response.get("Error", {}).get("Code", "unknown")


def message(error: ClientError) -> str:
    """The text that the service gave."""
    return error.response.get("Error", {}).get("Message", "")
