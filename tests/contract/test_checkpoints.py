"""The Checkpoints port: one suite for the one in memory and the one on S3 (moto); what S3 refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from sharewarden.aws.lazy import Lazy
from sharewarden.aws.s3 import S3Checkpoints
from sharewarden.domain.checkpoints import ObjectSeen, Protection, Version
from sharewarden.ports import Checkpoints, Denied, Unavailable
from sharewarden_tools.memory import MemoryClock
from sharewarden_tools.memory_objects import MemoryCheckpoints

from tests.contract.loopback import Answer, closed_port, hang_up, serving, silence, status
from tests.contract.s3_kit import BUCKET, FEW, NOW, URI, error_of, failing, few_a_page, s3


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    few_a_page(monkeypatch)


class Store:
    """A Checkpoints port, and what a test does behind it."""

    def __init__(self, port: Checkpoints, client: Any = None) -> None:
        self.port = port
        self._client = client

    def versioned(self) -> None:
        if isinstance(self.port, MemoryCheckpoints):
            self.port.versioned.add(BUCKET)
        else:
            self._client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})

    def delete(self, key: str) -> None:
        if isinstance(self.port, MemoryCheckpoints):
            self.port.delete(URI, key)
        else:
            self._client.delete_object(Bucket=BUCKET, Key=f"team/run/{key}")

    def all(self, uri: str = URI) -> list[ObjectSeen]:
        return [seen for page in self.port.pages(uri) for seen in page]

    def keys(self, uri: str = URI) -> list[str]:
        return [seen.key for seen in self.all(uri)]


@pytest.fixture(params=["memory", "moto"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        memory = MemoryCheckpoints(MemoryClock(NOW))
        memory.buckets[BUCKET] = {}
        yield Store(memory)
        return
    with mock_aws():
        client = s3()
        client.create_bucket(Bucket=BUCKET)
        yield Store(S3Checkpoints(client), client)


ODD_KEYS = ["a b", "ünï/çödé", "x\ty", "a//b", "..", "../up", "%2F", "+&=?#", "\U0001f4be", "k" * 900, "a/"]


def test_what_is_put_is_listed_with_its_size_and_read(store: Store) -> None:
    store.port.put(URI, "step-1/model.bin", b"12345")
    (seen,) = store.all()
    assert (seen.key, seen.size) == ("step-1/model.bin", 5)
    assert seen.etag
    assert store.port.read(URI, "step-1/model.bin", 5) == b"12345"


@pytest.mark.parametrize("key", ODD_KEYS)
def test_any_key_that_s3_takes_goes_in_and_out(store: Store, key: str) -> None:
    store.port.put(URI, key, b"x")
    assert store.keys() == [key]
    assert store.port.read(URI, key, 1) == b"x"


def test_times_are_epoch_milliseconds(store: Store) -> None:
    store.port.put(URI, "a", b"")
    assert store.all()[0].modified_at >= NOW - 366 * 86_400_000


@pytest.mark.parametrize("uri", [URI, URI + "/"])
def test_a_prefix_ends_where_its_last_name_ends(store: Store, uri: str) -> None:
    store.port.put(uri, "mine", b"1")
    store.port.put(URI + "-2", "other", b"2")
    store.port.put("s3://ckpt/team", "above", b"3")
    assert store.keys(uri) == ["mine"]
    assert store.port.read(uri, "other", 9) is None


def test_a_whole_bucket_is_a_place(store: Store) -> None:
    store.port.put("s3://ckpt", "a", b"1")
    assert store.keys("s3://ckpt") == store.keys("s3://ckpt/") == ["a"]


@pytest.mark.usefixtures("small_pages")
def test_pages_follow_one_another_until_the_last(store: Store) -> None:
    for number in range(2 * FEW + 1):
        store.port.put(URI, f"{number:04}", b"1")
    pages = store.port.pages(URI)
    assert [len(next(pages)), len(next(pages)), len(next(pages)), next(pages, None)] == [FEW, FEW, 1, None]
    assert len(set(store.keys())) == 2 * FEW + 1


def test_nothing_there_is_no_error(store: Store) -> None:
    assert store.all() == []
    assert store.port.read(URI, "a", 10) is None
    assert store.port.versions(URI, ["a"]) == {}
    assert store.port.protection(URI) == Protection(versioned=False)


def test_what_is_larger_than_asked_for_is_not_read(store: Store) -> None:
    store.port.put(URI, "a", b"12345")
    assert store.port.read(URI, "a", 4) is None


@pytest.mark.parametrize(
    "uri",
    ["", "ckpt", "s3://", "s3:///a", "https://ckpt/a", "s3://ckpt/a/../b", "s3://ckpt/.", "s3://b b/a",
     "S3://ckpt/a", "s3://ckpt/" + "a" * 1025],
)  # fmt: skip
def test_what_names_no_place_is_refused_before_s3_is_asked(store: Store, uri: str) -> None:
    port = store.port
    for call in (
        lambda: list(port.pages(uri)),
        lambda: port.read(uri, "a", 1),
        lambda: port.versions(uri, ["a"]),
        lambda: port.protection(uri),
        lambda: port.put(uri, "a", b""),
        lambda: port.restore(uri, "a", Version("v1", 1, "e", current=False)),
    ):
        with pytest.raises(Denied):
            call()


def test_no_such_bucket_is_denied(store: Store) -> None:
    port, uri = store.port, "s3://not-there/a"
    with pytest.raises(Denied, match="NoSuchBucket"):
        list(port.pages(uri))
    with pytest.raises(Denied):
        port.read(uri, "a", 1)
    with pytest.raises(Denied):
        port.versions(uri, ["a"])
    with pytest.raises(Denied):
        port.protection(uri)


def version_of(store: Store, key: str) -> Version:
    """The newest that is kept."""
    return store.port.versions(URI, [key])[key][0]


def test_a_version_is_found_and_comes_back_after_an_overwrite_and_a_deletion(store: Store) -> None:
    store.versioned()
    store.port.put(URI, "step-1/a", b"good")
    store.port.put(URI, "step-1/b", b"other")
    found = store.port.versions(URI, ["step-1/a", "step-1/b", "step-1/none"])
    assert {key: [one.current for one in kept] for key, kept in found.items()} == {
        "step-1/a": [True],
        "step-1/b": [True],
    }
    (good,) = found["step-1/a"]
    store.port.put(URI, "step-1/a", b"worse")
    worse, before = store.port.versions(URI, ["step-1/a"])["step-1/a"]
    assert (worse.size, worse.current, before) == (5, True, good._replace(current=False))
    store.delete("step-1/a")
    assert store.port.versions(URI, ["step-1/a"])["step-1/a"] == (worse._replace(current=False), before)
    assert store.keys() == ["step-1/b"]
    copy = store.port.restore(URI, "step-1/a", good)
    assert store.port.read(URI, "step-1/a", 10) == b"good"
    assert store.keys() == ["step-1/a", "step-1/b"]
    now = version_of(store, "step-1/a")
    assert (now.id, now.etag, now.current) == (copy, good.etag, True)
    assert copy != good.id


def test_a_version_tells_what_the_listing_tells(store: Store) -> None:
    store.versioned()
    store.port.put(URI, "a", b"12345")
    (seen,), found = store.all(), version_of(store, "a")
    assert (found.size, found.etag) == (seen.size, seen.etag)


def test_only_the_keys_that_were_asked_for_have_versions(store: Store) -> None:
    store.versioned()
    for key in ("a", "ab", "b", "c"):
        store.port.put(URI, key, b"1")
    assert store.port.versions(URI, ["a"]).keys() == {"a"}
    assert store.port.versions(URI, ["b", "a"]).keys() == {"a", "b"}


def test_of_no_keys_there_are_no_versions(store: Store) -> None:
    store.versioned()
    store.port.put(URI, "a", b"1")
    assert store.port.versions(URI, []) == {}


def test_a_bucket_without_versions_has_one_of_each(store: Store) -> None:
    store.port.put(URI, "a", b"1")
    store.port.put(URI, "a", b"22")
    ((only,),) = store.port.versions(URI, ["a"]).values()
    assert (only.id, only.size, only.current) == ("null", 2, True)


def test_what_was_there_before_versions_were_kept_comes_back(store: Store) -> None:
    store.port.put(URI, "a", b"early")
    early = version_of(store, "a")
    store.versioned()
    store.port.put(URI, "a", b"late")
    store.port.restore(URI, "a", early)
    assert store.port.read(URI, "a", 10) == b"early"


def test_a_version_that_is_gone_is_denied_and_named(store: Store) -> None:
    store.versioned()
    store.port.put(URI, "a", b"1")
    with pytest.raises(Denied, match="b has no version"):
        store.port.restore(URI, "b", version_of(store, "a"))
    with pytest.raises(Denied, match="a has no version"):
        store.port.restore(
            URI, "a", version_of(store, "a")._replace(id="00000000-0000-0000-0000-000000000000")
        )


def test_a_versioned_bucket_says_so(store: Store) -> None:
    store.versioned()
    assert store.port.protection(URI) == Protection(versioned=True)


# S3 alone.


def s3_with_rules(rules: list[dict[str, Any]], *, status_of: str | None = "Enabled") -> S3Checkpoints:
    client = s3()
    client.create_bucket(Bucket=BUCKET)
    if status_of:
        client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": status_of})  # type: ignore[typeddict-item]
    client.put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration={"Rules": rules})  # type: ignore[typeddict-item]
    return S3Checkpoints(client)


def rule(name: str = "r", *, on: bool = True, **members: Any) -> dict[str, Any]:
    members.setdefault("Filter", {"Prefix": ""})
    return {"ID": name, "Status": "Enabled" if on else "Disabled", **members}


OLD = {"NoncurrentVersionExpiration": {"NoncurrentDays": 7}}
OLDER = {"NoncurrentVersionExpiration": {"NoncurrentDays": 3}}
CURRENT = {"Expiration": {"Days": 30}}


@pytest.mark.parametrize(
    ("rules", "versioning", "days"),
    [
        ([rule(**OLD)], "Enabled", 7),
        ([rule(**OLD), rule("s", **OLDER)], "Enabled", 3),
        ([rule(on=False, **OLD)], "Enabled", None),
        ([rule(**CURRENT)], "Enabled", None),
        ([rule(**CURRENT)], None, 30),
        ([rule(**CURRENT)], "Suspended", 30),
        ([rule(**OLD)], None, None),
        ([rule(Filter={"Prefix": "team/"}, **OLD)], "Enabled", 7),
        ([rule(Filter={"Prefix": "team/run/step-"}, **OLD)], "Enabled", 7),
        ([rule(Filter={"Prefix": "team/run-2"}, **OLD)], "Enabled", None),
        ([rule(Filter={"Tag": {"Key": "a", "Value": "b"}}, **OLD)], "Enabled", 7),
        ([rule(Filter={"And": {"Prefix": "elsewhere/", "Tags": [{"Key": "a", "Value": "b"}]}}, **OLD)],
         "Enabled", None),
        ([{"ID": "r", "Status": "Enabled", "Prefix": "elsewhere/", **OLD}], "Enabled", None),
        ([rule(AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1})], "Enabled", None),
    ],
)  # fmt: skip
@mock_aws
def test_a_lifecycle_rule_that_would_take_them_is_found(
    rules: list[dict[str, Any]], versioning: str | None, days: int | None
) -> None:
    found = s3_with_rules(rules, status_of=versioning).protection(URI)
    assert found == Protection(versioned=versioning == "Enabled", expires_after_days=days)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (error_of("AccessDenied", 403), Denied),
        (error_of("NoSuchBucket", 404), Denied),
        (error_of("InvalidObjectState", 403), Denied),
        (error_of("SlowDown", 503), Unavailable),
        (error_of("InternalError", 500), Unavailable),
        (error_of("RequestTimeout", 400), Unavailable),
        (error_of("ExpiredToken", 400), Unavailable),
        (error_of("InvalidAccessKeyId", 403), Unavailable),
        (silence, Unavailable),
        (hang_up, Unavailable),
        (status(200, b"no XML at all <"), Unavailable),
        (status(200, b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"), Unavailable),
    ],
    ids=[
        *("AccessDenied", "NoSuchBucket", "InvalidObjectState", "SlowDown", "InternalError"),
        *("RequestTimeout", "ExpiredToken", "InvalidAccessKeyId", "silence", "hang-up", "no-xml", "no-token"),
    ],
)
def test_a_refusal_is_told_from_what_keeps_s3_from_answering(answer: Answer, error: type[Exception]) -> None:
    with serving(answer) as endpoint:
        endpoint.on_get = answer
        with pytest.raises(error):
            list(failing(endpoint.url).pages(URI))


def test_nobody_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        failing(f"http://127.0.0.1:{closed_port()}").read(URI, "a", 1)


def test_a_client_that_is_made_late_is_made_once_and_only_when_asked() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("x")
        return "client"

    late = Lazy(make)
    assert made == []
    assert [late.upper(), late.lower()] == ["CLIENT", "client"]
    assert made == ["x"]


@mock_aws
def test_what_s3_says_while_a_copy_is_made_is_mapped_too() -> None:
    client = s3()
    client.create_bucket(Bucket=BUCKET)
    port = S3Checkpoints(client)
    with pytest.raises((Denied, Unavailable)) as raised:
        port.restore(URI, "a", Version("00000000-0000-0000-0000-000000000000", 1, "e", current=False))
    assert isinstance(raised.value.__cause__, ClientError)
