"""S3 as the place where the lab's training jobs keep their checkpoints."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, ParamValidationError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Objects:
    """ObjectStore over boto3; a bucket is made when a training job first looks into it, or saves there.

    What S3 refuses is lost in silence, as on AWS: a sync that fails stops no training job
    (sagemaker-python-sdk issue 3062).
    """

    def __init__(self, client: S3Client) -> None:
        self._client = client
        self._buckets: set[str] = set()

    def put(self, uri: str, body: bytes) -> None:
        bucket, key = _place(uri)
        with suppress(ClientError, ParamValidationError):
            self._make(bucket)
            self._client.put_object(Bucket=bucket, Key=key, Body=body)

    def get(self, uri: str) -> bytes:
        bucket, key = _place(uri)
        try:
            return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            raise KeyError(uri) from error

    def list(self, prefix: str) -> list[str]:
        bucket, key = _place(prefix)
        with suppress(ClientError, ParamValidationError):
            self._make(bucket)
        if bucket not in self._buckets:
            return []
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=key)
        return sorted(f"s3://{bucket}/{row['Key']}" for page in pages for row in page.get("Contents", ()))

    def _make(self, bucket: str) -> None:
        if bucket not in self._buckets:
            self._client.create_bucket(Bucket=bucket)
            self._buckets.add(bucket)


def _place(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key
