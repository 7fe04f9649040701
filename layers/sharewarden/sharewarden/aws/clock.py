"""The machine's clock."""

import time


class SystemClock:
    """Clock over the time of the operating system."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000
