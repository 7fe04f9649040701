"""A notice: what a person is told of, kept with the fact that it tells and delivered by ``notify``.

It is committed together with its fact, under the fact's own key, so one fact is told once whoever finds it.
Each channel has a delivery of its own: what fails on one of them repeats nothing on the other.
"""

from typing import ClassVar, Literal

from .base import Frozen, shortened
from .stored import DAY, HOUR, MINUTE, Stored

#: How long a finished notice is remembered: longer than anything that could bring it again.
KEPT = 30 * DAY
#: A delivery that is under way for longer has lost its sender: ``notify`` may run for 60 s (template).
LOST = 5 * MINUTE
#: After so many tries that certainly did not go out, over some two hours, a person has to look.
MAX_TRIES = 8
LONGEST_PAUSE = 1 * HOUR

Severity = Literal["info", "warning", "alarm"]
Channel = Literal["topic", "webhook"]
State = Literal["waiting", "sending", "sent", "unsure", "failed"]


class Delivery(Frozen):
    """How far one channel has come. ``unsure``: nobody knows whether it went out, so it is never sent again.

    ``at``: when it came into this state; ``next_at``: not tried earlier; ``why``: what the last try met.
    """

    channel: Channel
    state: State = "waiting"
    at: int = 0
    tries: int = 0
    next_at: int = 0
    why: str | None = None


class Notice(Stored):
    """``deliveries`` are fixed when ``notify`` first tries: one for each channel that is set up then."""

    item: ClassVar[str] = "NOTICE"

    fact: str
    """Natural key of the audit fact."""
    kind: str
    """Kind of the fact."""
    at: int
    severity: Severity = "warning"
    title: str
    text: str
    queue: str
    """ARN of the job queue, under which a sweep finds what was not delivered."""
    share: str | None = None
    team: str | None = None
    job: str | None = None
    job_name: str | None = None
    policy: str | None = None
    mode: Literal["shadow", "enforce", "observed"] = "observed"
    deliveries: tuple[Delivery, ...] = ()
    untold_at: int | None = None
    """When ``notify`` found that no channel is set up."""

    @property
    def key(self) -> str:
        return self.fact

    @property
    def state(self) -> State | Literal["untold"]:
        """The one of all channels: what is under way first, then what people have to know."""
        if self.untold_at is not None:
            return "untold"
        states = {delivery.state for delivery in self.deliveries} or {"waiting"}
        order: tuple[State, ...] = ("sending", "waiting", "failed", "unsure", "sent")
        return next(state for state in order if state in states)

    @property
    def is_open(self) -> bool:
        return self.state in {"waiting", "sending"}

    @property
    def expires_at(self) -> int | None:
        if self.is_open:
            return None
        return max(self.at, self.untold_at or 0, *(one.at for one in self.deliveries), 0) + KEPT

    @property
    def open_queue(self) -> str | None:
        return self.queue if self.is_open else settled_under(self.queue, told=self.state == "sent")

    @property
    def alike(self) -> tuple[str | None, ...]:
        """What notices have in common that one message may tell together."""
        return (
            self.queue,
            self.kind,
            self.severity,
            self.share,
            self.team,
            self.policy,
            self.mode,
        )


def settled_under(queue: str, *, told: bool) -> str:
    """Where the settled notices of a queue are listed for people, until they are forgotten."""
    return f"{queue}#{'told' if told else 'not told'}"


def delivery(notice: Notice, channel: Channel) -> Delivery:
    """How far the channel has come with it; ``waiting`` before anybody looked."""
    return next((one for one in notice.deliveries if one.channel == channel), Delivery(channel=channel))


def is_lost(one: Delivery, now: int) -> bool:
    """True for a delivery whose sender is gone; a claim from the future is by a clock that went wrong."""
    return one.state == "sending" and not 0 <= now - one.at < LOST


def ready(notice: Notice, channel: Channel, now: int) -> bool:
    """True when the channel may be tried. While any channel is under way the notice is its sender's alone."""
    one = delivery(notice, channel)
    return notice.state == "waiting" and one.state == "waiting" and one.next_at <= now


def due(notice: Notice, now: int) -> bool:
    """True when ``notify`` has something to do with it."""
    if not notice.deliveries:
        return notice.is_open
    return any(is_lost(one, now) or ready(notice, one.channel, now) for one in notice.deliveries)


def claimed(notice: Notice, channel: Channel, channels: frozenset[Channel], now: int) -> Notice:
    """The notice with its delivery on this channel begun; ``channels`` are those set up."""
    known = notice.deliveries or tuple(Delivery(channel=name) for name in sorted(channels | {channel}))
    begun = notice.model_copy(update={"deliveries": known})
    tries = delivery(begun, channel).tries + 1
    return _with(begun, Delivery(channel=channel, state="sending", at=now, tries=tries))


def sent(notice: Notice, channel: Channel, now: int) -> Notice:
    return _ended(notice, channel, "sent", None, now)


def unsure(notice: Notice, channel: Channel, why: str, now: int) -> Notice:
    """It may have gone out: it stays as it is, for a person."""
    return _ended(notice, channel, "unsure", why, now)


def put_off(notice: Notice, channel: Channel, why: str, now: int) -> Notice:
    """It certainly did not go out: tried again after a pause that doubles, or given up."""
    tries = delivery(notice, channel).tries
    if tries >= MAX_TRIES:
        return _ended(notice, channel, "failed", why, now)
    later = _ended(notice, channel, "waiting", why, now)
    pause = min(LONGEST_PAUSE, MINUTE * 2 ** (tries - 1))
    return _with(later, delivery(later, channel).model_copy(update={"next_at": now + pause}))


def untold(notice: Notice, now: int) -> Notice:
    """There is nobody to tell. A channel that is set up later does not bring it back."""
    return notice.model_copy(update={"untold_at": now})


def _ended(notice: Notice, channel: Channel, state: State, why: str | None, now: int) -> Notice:
    update = {"state": state, "at": now, "why": shortened(why)}
    return _with(notice, delivery(notice, channel).model_copy(update=update))


def _with(notice: Notice, changed: Delivery) -> Notice:
    deliveries = tuple(changed if one.channel == changed.channel else one for one in notice.deliveries)
    return notice.model_copy(update={"deliveries": deliveries})
