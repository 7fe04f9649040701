"""Checkpoints over S3.

The owner of a bucket is not checked: checkpoints in a bucket of another account are legitimate, and what may
be read is for IAM to say.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from sharewarden.aws.errors import asking, code, message
from sharewarden.domain.checkpoints import ObjectSeen, Place, Protection, Version, place_of
from sharewarden.ports import Denied

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

#: What S3 answers when asking again would change nothing (S3 API reference, Error responses). The bare
#: numbers are those of HEAD, which has no body to tell more.
_REFUSED = {
    *("AccessDenied", "AllAccessDisabled", "AccountProblem", "403"),
    *("NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "AuthorizationHeaderMalformed"),
    *("InvalidObjectState", "MethodNotAllowed", "405"),
}
_NOT_THERE = {"NoSuchKey", "404"}
#: What S3 answers when a version to copy is not there, or is another one than was said (CopyObject).
_GONE = {"NoSuchKey", "NoSuchVersion", "404", "PreconditionFailed", "412"}
#: ListObjectVersions gives a thousand rows a page, earlier versions and deletions among them.
_MOST_VERSION_PAGES = 100
#: Larger objects are copied in parts of this size: one CopyObject takes 5 GB at most, and longer than clients
#: wait. There are 10,000 parts at most (S3 user guide, Multipart upload limits).
PART = 256 * 1024 * 1024
_MOST_PARTS = 10_000
#: Id of what is written while the bucket keeps no versions.
_NULL = "null"


class S3Checkpoints:
    """Checkpoints."""

    def __init__(self, client: "S3Client") -> None:
        self._client = client

    def pages(self, uri: str) -> Iterator[tuple[ObjectSeen, ...]]:
        place = _place(uri)
        request: dict[str, Any] = {"Bucket": place.bucket, "Prefix": place.prefix}
        while True:
            with _asking("ListObjectsV2", place):
                page = self._client.list_objects_v2(**request)
                seen = tuple(_seen(row, place.prefix) for row in page.get("Contents", ()))
                request["ContinuationToken"] = page["NextContinuationToken"] if page["IsTruncated"] else None
            yield seen
            if request["ContinuationToken"] is None:
                return

    def read(self, uri: str, key: str, most: int) -> bytes | None:
        place = _place(uri)
        with _asking("GetObject", place):
            try:
                answer = self._client.get_object(Bucket=place.bucket, Key=place.prefix + key)
            except ClientError as error:
                if code(error) in _NOT_THERE:
                    return None
                raise
            with answer["Body"] as body:
                return None if answer["ContentLength"] > most else body.read()

    def versions(self, uri: str, keys: Sequence[str]) -> dict[str, tuple[Version, ...]]:
        place = _place(uri)
        found: dict[str, list[Version]] = {key: [] for key in keys}
        last = max(keys, default="")
        pages = self._version_pages(place, _common(keys)) if keys else iter(())
        for rows in pages:
            for row in rows:
                if (kept := found.get(row["Key"].removeprefix(place.prefix))) is not None:
                    kept.append(_version(row))
            if rows and rows[-1]["Key"].removeprefix(place.prefix) > last:
                break
        return {key: tuple(kept) for key, kept in found.items() if kept}

    def protection(self, uri: str) -> Protection:
        place = _place(uri)
        versioned = self._versioned(place)
        days = [
            days for rule in self._rules(place) if (days := _expires_after(rule, place.prefix, versioned))
        ]
        return Protection(versioned=versioned, expires_after_days=min(days, default=None))

    def put(self, uri: str, key: str, body: bytes) -> None:
        place = _place(uri)
        with _asking("PutObject", place):
            self._client.put_object(Bucket=place.bucket, Key=place.prefix + key, Body=body)

    def restore(self, uri: str, key: str, version: Version) -> str:
        place = _place(uri)
        target: dict[str, Any] = {"Bucket": place.bucket, "Key": place.prefix + key}
        source: dict[str, Any] = {
            "CopySource": {**target, "VersionId": version.id},
            "CopySourceIfMatch": version.etag,
        }
        with _asking("CopyObject", place):
            try:
                if version.size > PART:
                    return self._copy_in_parts(target, source, version.size)
                return self._client.copy_object(**target, **source).get("VersionId", _NULL)
            except ClientError as error:
                if code(error) in _GONE:
                    raise Denied(f"{uri}: {key} has no version {version.id} any longer") from error
                raise

    def _copy_in_parts(self, target: dict[str, Any], source: dict[str, Any], size: int) -> str:
        upload = {**target, "UploadId": self._client.create_multipart_upload(**target)["UploadId"]}
        try:
            parts = [
                self._copy_part(upload, source, number, span) for number, span in enumerate(_spans(size), 1)
            ]
            done = self._client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        except BaseException:
            with suppress(ClientError, BotoCoreError):  # what is left of it costs until a rule cleans it up
                self._client.abort_multipart_upload(**upload)
            raise
        return done.get("VersionId", _NULL)

    def _copy_part(
        self, upload: dict[str, Any], source: dict[str, Any], number: int, span: tuple[int, int]
    ) -> "CompletedPartTypeDef":
        first, last = span
        answer = self._client.upload_part_copy(
            **upload, **source, PartNumber=number, CopySourceRange=f"bytes={first}-{last}"
        )
        return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

    def _versioned(self, place: Place) -> bool:
        with _asking("GetBucketVersioning", place):
            return self._client.get_bucket_versioning(Bucket=place.bucket).get("Status") == "Enabled"

    def _version_pages(self, place: Place, common: str) -> Iterator[list[Any]]:
        """The versions of the keys that begin with ``common``, by key, the newest first."""
        request: dict[str, Any] = {"Bucket": place.bucket, "Prefix": place.prefix + common}
        for _ in range(_MOST_VERSION_PAGES):
            with _asking("ListObjectVersions", place):
                page: Any = self._client.list_object_versions(**request)
                yield list(page.get("Versions", ()))
                if not page["IsTruncated"]:
                    return
                request |= {
                    "KeyMarker": page["NextKeyMarker"],
                    "VersionIdMarker": page["NextVersionIdMarker"],
                }
        raise Denied(f"ListObjectVersions: {place.bucket}: more than {_MOST_VERSION_PAGES} pages of versions")

    def _rules(self, place: Place) -> list[Any]:
        """The lifecycle rules of the bucket that are in force."""
        with _asking("GetBucketLifecycleConfiguration", place):
            try:
                answer: Any = self._client.get_bucket_lifecycle_configuration(Bucket=place.bucket)
            except ClientError as error:
                if code(error) == "NoSuchLifecycleConfiguration":
                    return []
                raise
            return [rule for rule in answer["Rules"] if rule["Status"] == "Enabled"]


@contextmanager
def _asking(operation: str, place: Place) -> Iterator[None]:
    """As ``asking``, and a refusal of this bucket is Denied."""
    with asking(operation):
        try:
            yield
        except ClientError as error:
            if code(error) in _REFUSED:
                raise Denied(f"{operation}: {place.bucket}: {code(error)}: {message(error)}") from error
            raise


def _place(uri: str) -> Place:
    try:
        return place_of(uri)
    except ValueError as error:
        raise Denied(str(error)) from error


def _common(keys: Sequence[str]) -> str:
    """What all of them begin with."""
    first, last = min(keys, default=""), max(keys, default="")
    return next((first[:n] for n in range(len(first), 0, -1) if last.startswith(first[:n])), "")


def _seen(row: Any, prefix: str) -> ObjectSeen:
    at = int(row["LastModified"].timestamp() * 1000)
    return ObjectSeen(row["Key"].removeprefix(prefix), row["Size"], at, row.get("ETag", ""))


def _version(row: Any) -> Version:
    return Version(row["VersionId"], row["Size"], row["ETag"], row["IsLatest"])


def _spans(size: int) -> Iterator[tuple[int, int]]:
    """First and last byte of each part."""
    part = max(PART, -(-size // _MOST_PARTS))
    return ((first, min(first + part, size) - 1) for first in range(0, size, part))


def _expires_after(rule: Any, prefix: str, versioned: bool) -> int | None:
    """Days after which the rule deletes something below the prefix for good; None: never.

    A rule for tagged or large objects only counts as one for all: which of ours it means is not known here.
    """
    of = rule.get("Filter", {})
    only = of.get("Prefix") or of.get("And", {}).get("Prefix") or rule.get("Prefix") or ""
    if not (only.startswith(prefix) or prefix.startswith(only)):
        return None
    if versioned:
        days = rule.get("NoncurrentVersionExpiration", {}).get("NoncurrentDays")
    else:
        days = rule.get("Expiration", {}).get("Days")
    return days if isinstance(days, int) else None
