"""What counts as a complete set, layout by layout, from listings as they come and as nobody wants them."""

import pytest
from sharewarden.domain.checkpoints import Save

from tests.simulation.world import NOW
from tests.unit.checkpoint_kit import MIB, found, manifest, ranks, saved, trainer

OURS = "step-000000000100-aaaa"
PARTS = "step-000000000100-bbbb"

Objects = dict[str, bytes]


def without(objects: Objects, *keys: str) -> Objects:
    return {key: body for key, body in objects.items() if key not in keys}


def test_our_set_is_told_with_all_that_its_manifest_says() -> None:
    looked = found(saved(100))
    assert looked.save == Save(
        name=OURS,
        step=100,
        saved_at=NOW - 1000,
        size=5 + len(manifest(100)),
        files=2,
        layout="manifest",
        took=1200,
        interval=600_000,
        training_job="train-1",
        resumed_from=None,
    )
    assert (looked.partial, looked.objects, looked.skipped) == (False, 2, 0)


def with_manifest(body: bytes, **files: bytes) -> Objects:
    return {f"{OURS}/_SAVED.json": body} | {f"{OURS}/{name}.pt": each for name, each in files.items()}


OUR_SETS: list[tuple[Objects, str | None]] = [
    (saved(100), None),
    (with_manifest(manifest(100, {})), None),
    (with_manifest(manifest(100, unknown="member", save_ms="soon", training_job=7), model=b"model"), None),
    (with_manifest(manifest(100), model=b"model", more=b"unnamed"), None),
    (with_manifest(manifest(100, {"./model.pt": 5}), model=b"model"), None),
    (with_manifest(manifest(100, {"model.pt": 5, "empty.pt": 0}), model=b"model", empty=b""), None),
    (without(saved(100), f"{OURS}/_SAVED.json"), "no _SAVED.json"),
    (without(saved(100), f"{OURS}/model.pt"), "1 files are missing or of another size, model.pt among them"),
    (with_manifest(manifest(100), model=b"mode"), "missing or of another size"),
    (with_manifest(b"", model=b"model"), "no _SAVED.json"),
    (with_manifest(b"{", model=b"model"), "no manifest"),
    (with_manifest(b"[]", model=b"model"), "no manifest"),
    (with_manifest(b"\xff\xfe", model=b"model"), "no manifest"),
    (with_manifest(b"[" * 100_000, model=b"model"), "no manifest"),
    (with_manifest(b'{"format": NaN}', model=b"model"), "no manifest"),
    (with_manifest(manifest(100, format=2), model=b"model"), "no manifest"),
    (with_manifest(manifest(100, saved_at=-1), model=b"model"), "no manifest"),
    (with_manifest(manifest(100, saved_at=2**63), model=b"model"), "no manifest"),
    (with_manifest(manifest(100, saved_at="1"), model=b"model"), "no manifest"),
    (with_manifest(manifest(100, saved_at=True), model=b"model"), "no manifest"),
    (with_manifest(manifest(100, {"../model.pt": 5}), model=b"model"), "no manifest"),
    (with_manifest(manifest(100, {"/model.pt": 5}), model=b"model"), "no manifest"),
    (with_manifest(manifest(100, {"": 0}), model=b"model"), "no manifest"),
    (with_manifest(manifest(100, {"model.pt": -1}), model=b"model"), "no manifest"),
    (with_manifest(manifest(101), model=b"model"), "another step, rank or world"),
    (with_manifest(manifest(100, world_size=2), model=b"model"), "another step, rank or world"),
    (ranks(100, 3), None),
    (ranks(100, 1), None),
    (ranks(100, 3, [0, 2]), "only 2 of 3 ranks have their manifest"),
    (ranks(100, 3, [1, 2]), "only 2 of 3 ranks have their manifest"),
    (without(ranks(100, 2), f"{PARTS}/rank-00001-of-00002/model.pt"), "rank-00001-of-00002/model.pt among"),
    (ranks(100, 2) | {f"{PARTS}/rank-00001-of-00002/_SAVED.json": manifest(100, world_size=2)},
     "another step, rank or world"),
    (ranks(100, 4, [0, 1]) | ranks(100, 2), None),
    (ranks(100, 3) | ranks(100, 5, [4]), None),
    (ranks(100, 2) | {f"{PARTS}/_SAVED.json": manifest(100)}, "missing or of another size"),
    ({f"{PARTS}/rank-00000-of-00000/_SAVED.json": manifest(100)}, "no _SAVED.json"),
    ({f"{PARTS}/rank-9-of-2/_SAVED.json": manifest(100)}, "no _SAVED.json"),
    ({f"{PARTS}/rank-999999999-of-999999999/_SAVED.json": manifest(100)}, "no _SAVED.json"),
    ({f"{PARTS}/rank-{n}-of-{n + 5}/_SAVED.json": b"{}" for n in range(50)}, "numbered in too many ways"),
]  # fmt: skip


@pytest.mark.parametrize(("objects", "why"), OUR_SETS)
def test_ours_needs_every_manifest_and_every_file_with_its_size(objects: Objects, why: str | None) -> None:
    looked = found(objects)
    assert (looked.save is not None, looked.partial) == (why is None, False)
    (seen,) = looked.sets
    assert (seen.layout, seen.step) == ("manifest", 100)
    assert seen.state == ("incomplete" if why else "complete")
    assert (why or "") in (seen.why or "")


@pytest.mark.parametrize(
    "key",
    [
        "step-100/_SAVED.json",
        "step-1234567890123456789-a/_SAVED.json",
        "step-\u0661\u0660\u0660-a/_SAVED.json",
        "run/step-000000000100-aaaa/_SAVED.json",
        "checkpoint-\u0663/trainer_state.json",
        "runs/checkpoint-100/trainer_state.json",
        "checkpoint-best/model.safetensors",
        "logs/events.out.tfevents.1",
        "model.pt.tmp",
        ".model.pt",
        "sub/model.pt",
        "model-rank-0.pt",
        "model_rank0.pt",
        "model-00001-of-00004.pt",
        "optimizer.pt",
        "optim_100.pt",
        "mp_rank_00_model_states.pt",
        "tmp.ckpt",
        "README.md",
        "..",
        "a/../b.pt",
        "\x00",
        "\u2028.txt",
        "k" * 1000,
        "pt",
    ],
)
def test_other_names_belong_to_no_set(key: str) -> None:
    looked = found({key: b"x" * 9})
    assert (looked.save, looked.sets, looked.objects, looked.skipped) == (None, (), 1, 1)


@pytest.mark.parametrize(
    "key",
    [
        ".saving-rank-00000-of-00001-step-000000000100-aaaa/_SAVED.json",
        ".sharewarden/requests/train-1.json",
        ".sharewarden/acks/train-1/r-1.json",
    ],
)
def test_our_own_files_are_no_sets_and_nothing_to_wonder_about(key: str) -> None:
    looked = found({key: b"x"})
    assert (looked.sets, looked.objects, looked.skipped) == ((), 1, 0)


@pytest.mark.parametrize("key", ["", "/", "step-000000000100-aaaa/", "checkpoint-3/", "model.pt/"])
def test_what_marks_a_folder_is_no_object(key: str) -> None:
    assert (found({key: b""}).sets, found({key: b""}).objects) == ((), 0)


@pytest.mark.parametrize(
    ("key", "step"),
    [
        ("model.pt", None),
        ("last.ckpt", None),
        ("MODEL-STEP-7.PT", 7),
        ("checkpoint_1000.pt", 1000),
        ("ckpt-1000.pth", 1000),
        ("epoch=3-step=400.ckpt", 400),
        ("epoch=3.ckpt", 3),
        ("global_step4000.pt", 4000),
        ("iter_0004000.pth", 4000),
        ("400.pt", 400),
        ("resnet50.pt", None),
        ("resnet_50.pt", None),
        ("model-v2.pt", None),
        ("epoch-1-epoch-2.pt", None),
        ("step1-step2.ckpt", None),
        ("footstep5.pt", None),
        ("checkpoint-" + "9" * 30 + ".pt", None),
        ("モデル-step-5.pt", 5),
        ("a+b c-step-5.pt", 5),
    ],
)
def test_a_single_file_is_a_set_and_its_name_tells_the_step_where_it_can_only_be_that(
    key: str, step: int | None
) -> None:
    save = found({key: b"12345"}).save
    assert save is not None
    assert (save.name, save.step, save.layout, save.size) == (key, step, "pytorch", 5)


def test_an_empty_file_is_no_checkpoint() -> None:
    looked = found({"model.pt": b""})
    assert (looked.save, looked.sets[0].why) == (None, "it is empty")


def sharded(step: int, world: int, have: range, ending: str = "safetensors") -> Objects:
    stem = "model" if ending == "safetensors" else "pytorch_model"
    shards = {f"{stem}-{n:05d}-of-{world:05d}.{ending}": b"1" for n in have}
    index = {f"{stem}.{ending}.index.json": b"{}"}
    return trainer(step, "model.safetensors") | {
        f"checkpoint-{step}/{name}": body for name, body in (shards | index).items()
    }


TRAINERS: list[tuple[Objects, str | None]] = [
    (trainer(500), None),
    (trainer(500, "optimizer.pt", "scheduler.pt"), None),
    (trainer(500, "model.safetensors") | {"checkpoint-500/pytorch_model.bin": b"1"}, None),
    (trainer(500, "model.safetensors") | {"checkpoint-500/adapter_model.safetensors": b"1"}, None),
    (sharded(500, 3, range(1, 4)), None),
    (sharded(500, 3, range(1, 4), "bin"), None),
    (trainer(500, "trainer_state.json"), "no trainer_state.json"),
    (trainer(500) | {"checkpoint-500/trainer_state.json": b""}, "no trainer_state.json"),
    (trainer(500, "model.safetensors"), "no weights"),
    (trainer(500) | {"checkpoint-500/model.safetensors": b""}, "no weights"),
    (trainer(500, "model.safetensors") | {"checkpoint-500/deep/model.safetensors": b"1"}, "no weights"),
    (sharded(500, 3, range(1, 3)), "only 2 of 3 shards of the weights"),
    (sharded(500, 3, range(2, 4)), "only 2 of 3 shards of the weights"),
    (without(sharded(500, 2, range(1, 3)), "checkpoint-500/model.safetensors.index.json"), "no index"),
    (sharded(500, 2, range(1, 2)) | {"checkpoint-500/model-00002-of-00002.safetensors": b""}, "only 1 of 2"),
]


@pytest.mark.parametrize(("objects", "why"), TRAINERS)
def test_a_folder_of_the_trainer_needs_its_state_and_all_its_weights(
    objects: Objects, why: str | None
) -> None:
    looked = found(objects)
    (seen,) = looked.sets
    assert (seen.name, seen.step, seen.layout) == ("checkpoint-500", 500, "hugging-face")
    assert (seen.state, looked.save is None) == (("incomplete", True) if why else ("complete", False))
    assert (why or "") in (seen.why or "")


SHARDS = "step-{step}/model-{rank}-of-{world}.bin"
PAIR = "{step}.model + opt/{step}.state"


def shards(step: int, world: int, have: range) -> Objects:
    return {f"step-{step}/model-{n}-of-{world}.bin": b"12" for n in have}


PATTERNS: list[tuple[str, Objects, int | None, str | None]] = [
    (SHARDS, shards(7, 4, range(4)), 7, None),
    (SHARDS, shards(7, 4, range(1, 5)), 7, None),
    (SHARDS, shards(7, 4, range(3)), 7, "only 3 of 4 ranks"),
    (SHARDS, shards(7, 4, range(4)) | {"step-7/model-2-of-4.bin": b""}, 7, "only 3 of 4 ranks"),
    (PAIR, {"7.model": b"1", "opt/7.state": b"1"}, 7, None),
    (PAIR, {"7.model": b"1"}, 7, "only 1 of 2 parts"),
    (PAIR, {"7.model": b"1", "opt/7.state": b""}, 7, "only 1 of 2 parts"),
    ("a.bin + b.bin", {"a.bin": b"1", "b.bin": b"1"}, None, None),
    ("*/epoch={step}.ckpt", {"run-3/epoch=9.ckpt": b"1"}, 9, None),
    ("*.npz", {"weights.npz": b"1"}, None, None),
    ("*.npz", {"weights.npz": b""}, None, "it is empty"),
    ("step-{step}/{step}.bin", {"step-7/7.bin": b"1"}, 7, None),
    ("step-{step}/{step}.bin", {"step-7/8.bin": b"1"}, None, "none"),
    ("a.b", {"axb": b"1"}, None, "none"),
    ("{step}.bin", {"run/5.bin": b"1"}, None, "none"),
]


@pytest.mark.parametrize(("pattern", "objects", "step", "why"), PATTERNS)
def test_a_pattern_of_the_policy_makes_sets(
    pattern: str, objects: Objects, step: int | None, why: str | None
) -> None:
    looked = found(objects, pattern)
    if why == "none":
        assert (looked.sets, looked.skipped) == ((), len(objects))
        return
    (seen,) = looked.sets
    assert (seen.layout, seen.step, seen.files) == ("pattern", step, len(objects))
    assert (seen.state, looked.save is None) == (("incomplete", True) if why else ("complete", False))
    assert (why or "") in (seen.why or "")


def test_a_pattern_comes_before_what_is_known_without() -> None:
    objects = {"model-5.pt": b"1", "optim-5.pt": b"1", "model-9.pt": b"1"}
    looked = found(objects, "model-{step}.pt + optim-{step}.pt")
    assert looked.save is not None
    assert (looked.save.step, looked.save.layout, looked.save.name) == (
        5,
        "pattern",
        "model-5.pt + optim-5.pt",
    )


def test_the_first_pattern_that_fits_takes_a_key() -> None:
    looked = found({"a-5.bin": b"1"}, "a-{step}.bin", "*.bin")
    assert [(seen.step, seen.name) for seen in looked.sets] == [(5, "a-5.bin")]


def test_a_large_manifest_is_not_read_and_not_judged() -> None:
    looked = found(with_manifest(b" " * (MIB + 1), model=b"model"))
    assert (looked.save, looked.partial, looked.sets[0].state) == (None, True, "unverified")
