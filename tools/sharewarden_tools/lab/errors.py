"""The one exception that an operation of the lab raises."""

from __future__ import annotations


class ApiError(Exception):
    """An answer that AWS gives instead of a result: error code, text, HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def client_error(message: str) -> ApiError:
    """Batch answers every wrong request with ClientException (API_SubmitServiceJob and its siblings)."""
    return ApiError("ClientException", message, 400)


def too_many_requests() -> ApiError:
    """Throttling of Batch, which its model does not list (re:Post: aws-batch-requests-error)."""
    return ApiError("TooManyRequestsException", "Too Many Requests", 429)
