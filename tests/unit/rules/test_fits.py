"""The arithmetic of what fits a share agrees with the lab's scheduler, reason by reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sharewarden.domain.fits import Misfit, misfit, room
from sharewarden.domain.known import share_facts
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.policy import Policy
from sharewarden_tools.lab.book import PoolJob, ShareRules
from sharewarden_tools.lab.pool import Pool
from sharewarden_tools.lab.scheduler import never_fits

UNIT, OTHER = "ml.g5.xlarge", "ml.p5.48xlarge"
STRATEGIES = st.sampled_from(["RESERVE", "LEND", "LEND_AND_BORROW"])
RULES = st.builds(
    ShareRules,
    own=st.dictionaries(st.sampled_from([UNIT, OTHER]), st.integers(1, 6), min_size=1),
    strategy=STRATEGIES,
    borrow_limit=st.sampled_from([-1, 0, 33, 50, 100, 200]),
)


def described(name: str, rules: ShareRules) -> ShareDescription:
    return ShareDescription(
        arn=f"arn:aws:batch:us-east-1:123456789012:job-queue/q/quota-share/{name}",
        name=name,
        queue="q",
        limits=tuple(rules.own.items()),
        strategy=rules.strategy,
        borrow_limit=rules.borrow_limit if rules.strategy == "LEND_AND_BORROW" else None,
    )


@given(st.dictionaries(st.sampled_from("abc"), RULES, min_size=1), st.integers(1, 20))
def test_it_says_what_the_scheduler_says(shares: dict[str, ShareRules], asked: int) -> None:
    pool = Pool(environment={UNIT: 100, OTHER: 100})
    for name, rules in shares.items():
        pool.configure_share(name, rules)
    name = min(shares)
    reason = never_fits(pool, PoolJob("j", name, ((UNIT, asked),), priority=1, order=1))
    seen = [described(one, rules) for one, rules in shares.items()]
    own = share_facts(described(name, shares[name]), "q", Policy(), seen)
    word = misfit(own, UNIT, asked)
    assert (word is None) == (reason is None)
    if isinstance(word, Misfit) and word.reason:
        assert reason is not None
        assert reason.endswith(f" - {word.reason}")
    if word is None:
        space = room(own, UNIT)
        assert space is not None
        assert space.own == shares[name].own[UNIT]
