"""How long one call to AWS may take, against the time that a function has."""

from __future__ import annotations

import pytest
from sharewarden import messages
from sharewarden.bootstrap import CONFIG
from sharewarden.intake.sweeps import SWEEP_SPARE_MS
from sharewarden_tools.template import load_template

from tests.template.stack import Stack

CALLERS = ("React", "Apply", "Sweep", "Notify", "Watch")


def longest_call() -> float:
    """Seconds of one call that is never answered: botocore's standard mode pauses 1, 2, 4 ... s at most."""
    attempts = CONFIG.retries["total_max_attempts"]
    pauses = sum(2**number for number in range(attempts - 1))
    return float(attempts * (CONFIG.connect_timeout + CONFIG.read_timeout) + pauses)


@pytest.mark.parametrize("name", CALLERS)
def test_one_call_takes_a_third_of_a_function_at_most(name: str) -> None:
    function = Stack(load_template()).of_type("AWS::Serverless::Function")[name]
    assert longest_call() <= function["Timeout"] / 3


@pytest.mark.parametrize("spare", [messages.MESSAGE_SPARE_MS, SWEEP_SPARE_MS])
def test_work_ends_in_order_though_the_last_call_hangs(spare: int) -> None:
    assert longest_call() * 1000 < spare
