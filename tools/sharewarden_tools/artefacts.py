"""Whether what `sam build` made is what shall be deployed: small, complete, and nothing beside.

    python3.13 tools/sharewarden_tools/artefacts.py BUILD_DIR PINS ARCHITECTURE

runs by itself, without any package installed, so that a handler is imported from layer and folder alone.
Exit code 1, with one line a fault, if something is wrong.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

#: Lambda takes 250 MB of function and layers; a layer that grows towards it would slow every cold start.
MAX_BYTES = 60_000_000
OURS = {"sharewarden", "requirements.in", "requirements.txt", "__pycache__"}
#: Bytecode that is never compared with its source: Lambda's copy of the source has another time.
UNCHECKED = b"\x01\x00\x00\x00"
#: `e_machine` in the header of an ELF file.
MACHINES = {"x86_64": 62, "arm64": 183}
PATH = "import sys; sys.path[:0] = sys.argv[1:]"
IMPORT = f"{PATH}; from app import handler; assert callable(handler)"
#: A custom rule loads what no function imports, from a package without its command line (sam_build.sh).
RULE = f"{PATH}; from sharewarden.domain.expressions import expression; expression('job.instances > 1')"


def faults(build: Path, pins: Path, architecture: str) -> Iterator[str]:
    """What is wrong with the build. `pins` is the layer's requirements file."""
    layer = build / "Layer" / "python"
    if not layer.is_dir():
        yield f"{layer} is missing"
        return
    if (size := layer_bytes(build)) > MAX_BYTES:
        yield f"the layer has {size:,} bytes, more than {MAX_BYTES:,}"
    if not _has_bytecode(layer):
        yield "the layer has no bytecode that Lambda would use: each cold start would compile it all"
    yield from _distributions(layer, pins)
    yield from (f"{name} in the layer belongs to no pinned package" for name in sorted(_strangers(layer)))
    yield from _binaries(layer, architecture)
    for function in sorted(path.parent for path in build.glob("*/app.py")):
        yield from _function(function, layer, architecture)
    yield from _ends_well("a custom rule does not load", RULE, [layer], architecture)


def _has_bytecode(layer: Path) -> bool:
    """Our own modules stand for all: bytes 4-7 of a .pyc say how it is checked (PEP 552)."""
    ours = list((layer / "sharewarden").rglob("*.py"))
    compiled = [path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc" for path in ours]
    return bool(ours) and all(path.is_file() and path.read_bytes()[4:8] == UNCHECKED for path in compiled)


def layer_bytes(build: Path) -> int:
    """Size of the layer as Lambda unpacks it."""
    return sum(path.stat().st_size for path in (build / "Layer").rglob("*") if path.is_file())


def _distributions(layer: Path, pins: Path) -> Iterator[str]:
    text = pins.read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([a-z0-9-]+)==(\S+)(?! ; sys_platform == 'win32')(?=\s)", text, re.MULTILINE))
    found = {_name_and_version(path.name) for path in layer.glob("*.dist-info")}
    yield from (
        f"{name} {version} is in the layer and not pinned" for name, version in sorted(found - pinned)
    )
    yield from (
        f"{name} {version} is pinned and not in the layer" for name, version in sorted(pinned - found)
    )


def _name_and_version(folder: str) -> tuple[str, str]:
    name, _, version = folder.removesuffix(".dist-info").partition("-")
    return name.replace("_", "-").lower(), version


def _strangers(layer: Path) -> set[str]:
    """What lies in the layer and no package brought: tests, tools, a stray file."""
    records = (path.read_text(encoding="utf-8").splitlines() for path in layer.glob("*.dist-info/RECORD"))
    brought = {line.split(",")[0].split("/")[0] for record in records for line in record}
    there = {path.name for path in layer.iterdir() if path.suffix not in (".dist-info", ".data")}
    return there - brought - OURS


def _binaries(layer: Path, architecture: str) -> Iterator[str]:
    for path in sorted(layer.rglob("*.so")):
        if int.from_bytes(path.read_bytes()[18:20], "little") != MACHINES[architecture]:
            yield f"{path.name} is not for {architecture}"


def _function(function: Path, layer: Path, architecture: str) -> Iterator[str]:
    extra = sorted(path.name for path in function.iterdir() if path.name != "app.py")
    if extra:
        yield f"{function.name} holds more than its app.py: {', '.join(extra)}"
    yield from _ends_well(f"{function.name} does not import", IMPORT, [function, layer], architecture)


def _ends_well(fault: str, code: str, path: list[Path], architecture: str) -> Iterator[str]:
    if platform.machine() not in (architecture, {"arm64": "aarch64"}.get(architecture)):
        return  # a binary of another processor cannot be loaded here
    python = [sys.executable, "-I", "-S", "-B", "-c", code, *map(str, path)]
    run = subprocess.run(python, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
    if run.returncode:
        yield f"{fault}: {run.stderr.strip().splitlines()[-1]}"


def main(build: str, pins: str, architecture: str) -> int:
    found = list(faults(Path(build), Path(pins), architecture))
    for fault in found:
        print(f"artefacts: {fault}", file=sys.stderr)
    if not found:
        print(
            f"artefacts: the layer has {layer_bytes(Path(build)) / 1e6:.1f} MB unzipped, for {architecture}"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
