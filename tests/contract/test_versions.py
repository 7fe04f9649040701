"""Versions on S3: found behind any number of others, and copied back whole, in parts where they are large."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from moto import mock_aws
from sharewarden.aws.s3 import S3Checkpoints, _spans
from sharewarden.ports import Denied
from sharewarden_tools.memory import MemoryClock
from sharewarden_tools.memory_objects import MemoryCheckpoints

from tests.contract.loopback import serving
from tests.contract.s3_kit import BUCKET, FEW, NOW, URI, error_of, failing, few_a_page, s3


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    few_a_page(monkeypatch)


def versioned() -> Any:
    """A client of a bucket that keeps versions."""
    client = s3()
    client.create_bucket(Bucket=BUCKET)
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    return client


@pytest.mark.usefixtures("small_pages")
@mock_aws
def test_versions_are_found_behind_many_earlier_ones() -> None:
    client = versioned()
    port = S3Checkpoints(client)
    for number in range(3 * FEW):
        port.put(URI, "a", str(number).encode())
    port.put(URI, "b", b"1")
    found = port.versions(URI, ["a", "b"])
    assert [len(found["a"]), len(found["b"])] == [3 * FEW, 1]
    assert port.versions(URI, ["a"]) == {"a": found["a"]}
    newest = found["a"][0]
    assert [one.current for one in found["a"]] == [True] + [False] * (3 * FEW - 1)
    port.put(URI, "a", b"newest")
    port.restore(URI, "a", newest)
    assert port.read(URI, "a", 10) == b"14"


@pytest.mark.usefixtures("small_pages")
@mock_aws
def test_more_versions_than_a_look_reads_are_refused_and_pages_behind_the_last_key_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sharewarden.aws.s3._MOST_VERSION_PAGES", 1)
    client = versioned()
    port = S3Checkpoints(client)
    for number in range(2 * FEW):
        port.put(URI, f"a{number}", b"1")
    assert port.versions(URI, ["a0"]).keys() == {"a0"}
    with pytest.raises(Denied, match="more than 1 pages"):
        port.versions(URI, ["a0", "a9"])


MIB = 1024 * 1024


@pytest.mark.parametrize(("size", "parts"), [(5 * MIB, ""), (5 * MIB + 1, "2"), (11 * MIB, "3")])
@mock_aws
def test_a_large_object_comes_back_in_parts(size: int, parts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharewarden.aws.s3.PART", 5 * MIB)  # the least that S3 takes
    client = versioned()
    port = S3Checkpoints(client)
    body = bytes(range(251)) * (size // 251 + 1)
    port.put(URI, "a", body[:size])
    (before,) = port.versions(URI, ["a"])["a"]
    client.delete_object(Bucket=BUCKET, Key="team/run/a")
    copy = port.restore(URI, "a", before)
    assert port.read(URI, "a", size) == body[:size]
    now = port.versions(URI, ["a"])["a"][0]
    assert now[:2] == (copy, size)
    assert now.etag.rstrip('"').partition("-")[2] == parts  # how many, in the ETag of an object made of parts


@mock_aws
def test_a_copy_in_parts_that_breaks_off_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharewarden.aws.s3.PART", 5 * MIB)
    client = versioned()
    port = S3Checkpoints(client)
    port.put(URI, "a", b"1" * 6 * MIB)
    (before,) = port.versions(URI, ["a"])["a"]
    with pytest.raises(Denied, match="a has no version"):
        port.restore(URI, "a", before._replace(id="00000000-0000-0000-0000-000000000000"))
    assert client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []) == []
    assert port.versions(URI, ["a"])["a"] == (before,)


def test_parts_cover_the_largest_object_in_ten_thousand() -> None:
    size = 5 * 1024**4
    spans = list(_spans(size))
    assert len(spans) <= 10_000
    assert (spans[0][0], spans[-1][1]) == (0, size - 1)
    assert all(first == last + 1 for (_, last), (first, _) in pairwise(spans))


def test_another_content_under_the_same_id_is_denied() -> None:
    """As under ``null`` once a bucket keeps versions no longer. S3 is asked to compare (moto does not)."""
    memory = MemoryCheckpoints(MemoryClock(NOW))
    memory.put(URI, "a", b"1")
    ((before,),) = memory.versions(URI, ["a"]).values()
    memory.put(URI, "a", b"2")
    with pytest.raises(Denied, match="a has no version null"):
        memory.restore(URI, "a", before)
    refusal = pytest.raises(Denied, match="a has no version null")
    with serving(error_of("PreconditionFailed", 412)) as endpoint, refusal:
        failing(endpoint.url).restore(URI, "a", before)
    ((path, headers, _),) = endpoint.requests
    assert path == "/ckpt/team/run/a"
    assert headers["x-amz-copy-source"] == "ckpt/team/run/a?versionId=null"
    assert headers["x-amz-copy-source-if-match"] == before.etag
