"""The pins: hashed, from wherever pip is set to look; one version each in what is deployed and tested."""

import re
from pathlib import Path

import pytest
from sharewarden_tools.template import TEMPLATE

ROOT = TEMPLATE.parent
LAYER = Path("layers/sharewarden/requirements.txt")
DEMO = Path("requirements-demo.txt")
DEV = Path("requirements-dev.txt")
SAM = Path("requirements-sam.txt")
SCAN = Path("requirements-scan.txt")
EMULATOR = Path("requirements-emulator.txt")
SAGEMAKER = Path("requirements-sagemaker.txt")
TRAINING = Path("requirements-training.txt")
TORCH = Path("requirements-torch.txt")
RUNTIME = Path("tools/sam_local/requirements-runtime.txt")
REQUIREMENT = re.compile(
    r"^([a-z0-9-]+)==(\S+)(?: ; [^\\]+)? \\(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+$", re.M
)


def pins(path: Path) -> set[tuple[str, str]]:
    return {(name, version) for name, version in REQUIREMENT.findall((ROOT / path).read_text())}


@pytest.mark.parametrize(
    "path", [LAYER, DEMO, DEV, SAM, SCAN, EMULATOR, SAGEMAKER, TRAINING, TORCH, RUNTIME], ids=str
)
def test_a_pinned_file_holds_hashed_requirements_and_comments_alone(path: Path) -> None:
    rest = REQUIREMENT.sub("", (ROOT / path).read_text())
    assert [line for line in rest.splitlines() if line.strip() and not line.lstrip().startswith("#")] == []
    assert "://" not in rest
    assert pins(path)


@pytest.mark.parametrize(("smaller", "larger"), [(LAYER, DEMO), (DEMO, DEV)], ids=str)
def test_what_is_deployed_is_what_is_tested(smaller: Path, larger: Path) -> None:
    assert pins(smaller) < pins(larger)
