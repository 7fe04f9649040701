"""The check of a build, on builds made up here."""

import platform
from collections.abc import Callable
from pathlib import Path

import pytest
from sharewarden_tools import artefacts
from sharewarden_tools.artefacts import MACHINES, faults, main

HERE = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
OTHER = next(name for name in MACHINES if name != HERE)


COMPILED = "sharewarden/__pycache__/__init__.cpython-313.pyc"
EXPRESSIONS = "sharewarden/domain/expressions.py"


def elf(architecture: str) -> bytes:
    return b"\x7fELF".ljust(18, b"\0") + MACHINES[architecture].to_bytes(2, "little")


def bytecode(flags: int) -> bytes:
    """A .pyc whose magic number no Python knows, so that none runs it; the flags are PEP 552's."""
    return bytes(4) + flags.to_bytes(4, "little") + bytes(8)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A layer of one pinned package with a binary, and one function."""
    layer = tmp_path / "Layer/python"
    for folder in ("sharewarden", "six_core", "six_core-1.0.dist-info"):
        (layer / folder).mkdir(parents=True)
    (layer / "sharewarden/__init__.py").write_text("ANSWER = 42")
    (layer / "sharewarden/__pycache__").mkdir()
    (layer / COMPILED).write_bytes(bytecode(0b01))
    (layer / "sharewarden/domain/__pycache__").mkdir(parents=True)
    (layer / EXPRESSIONS).write_text("expression = str.encode")
    (layer / "sharewarden/domain/__pycache__/expressions.cpython-313.pyc").write_bytes(bytecode(0b01))
    (layer / "six_core-1.0.dist-info/RECORD").write_text(
        "six_core/core.so,,\nsix_core-1.0.dist-info/RECORD,,\n"
    )
    (layer / "six_core/core.so").write_bytes(elf(HERE))
    (tmp_path / "React").mkdir()
    (tmp_path / "React/app.py").write_text("from sharewarden import ANSWER\ndef handler(): ...")
    (tmp_path / "pins.txt").write_text("six-core==1.0 \\\n    --hash=sha256:00\n")
    return tmp_path


def check(build: Path, architecture: str = HERE) -> list[str]:
    return list(faults(build, build / "pins.txt", architecture))


def test_a_clean_build_has_no_fault(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(build) == []
    assert main(str(build), str(build / "pins.txt"), HERE) == 0
    assert "0.0 MB unzipped" in capsys.readouterr().out


SABOTAGE: list[tuple[str, Callable[[Path], object]]] = [
    (
        "pytest 9.0 is in the layer and not pinned",
        lambda b: (b / "Layer/python/pytest-9.0.dist-info").mkdir(),
    ),
    (
        "six-core 1.0 is pinned and not in the layer",
        lambda b: (b / "Layer/python/six_core-1.0.dist-info").rename(b / "x"),
    ),
    ("tests in the layer belongs to no pinned package", lambda b: (b / "Layer/python/tests").mkdir()),
    (f"core.so is not for {HERE}", lambda b: (b / "Layer/python/six_core/core.so").write_bytes(elf(OTHER))),
    ("React holds more than its app.py: notes.txt", lambda b: (b / "React/notes.txt").touch()),
    (
        "React does not import: ImportError",
        lambda b: (b / "Layer/python/sharewarden/__init__.py").write_text(""),
    ),
    (
        "React does not import: ModuleNotFoundError",
        lambda b: (b / "React/app.py").write_text("import pydantic"),
    ),
    (
        "a custom rule does not load: ModuleNotFoundError",
        lambda b: (b / "Layer/python" / EXPRESSIONS).write_text("import prompt_toolkit"),
    ),
    ("the layer has no bytecode", lambda b: (b / "Layer/python" / COMPILED).unlink()),
    (
        "the layer has no bytecode that Lambda would use",
        lambda b: (b / "Layer/python" / COMPILED).write_bytes(bytecode(0b11)),
    ),
    ("Layer/python is missing", lambda b: (b / "Layer").rename(b / "x")),
]


@pytest.mark.parametrize(("fault", "sabotage"), SABOTAGE, ids=[case[0] for case in SABOTAGE])
def test_what_is_wrong_is_named(
    build: Path, fault: str, sabotage: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    sabotage(build)
    assert [each for each in check(build) if fault in each]
    assert main(str(build), str(build / "pins.txt"), HERE) == 1
    assert fault in capsys.readouterr().err


def test_a_pin_for_windows_is_not_looked_for(build: Path) -> None:
    pins = build / "pins.txt"
    pins.write_text(f"{pins.read_text()}colorama==0.4.6 ; sys_platform == 'win32' \\\n    --hash=sha256:00\n")
    assert check(build) == []


def test_a_layer_that_is_too_big_is_refused(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "MAX_BYTES", 10)
    assert "more than 10" in check(build)[0]


def test_a_build_for_another_processor_is_checked_without_running_it(build: Path) -> None:
    (build / "Layer/python/six_core/core.so").write_bytes(elf(OTHER))
    (build / "React/app.py").write_text("raise SystemExit")
    assert check(build, OTHER) == []
