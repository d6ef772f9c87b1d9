"""The choice of a device: the user's wish, what "auto" makes of it, and the CPU when the device fails."""

from collections.abc import Callable
from typing import Any

from streamsvm.core.device.gpu import Gpu, NoDevice, find_gpu, reason_of
from streamsvm.core.stream_warning import warn

DEVICES = ("cpu", "cuda", "auto")
# device="auto" weighs what the CPU would do.  A call of the device takes 0.6 to 1 ms, whatever its work.  Beside 16
# cores an H200 is the faster from 8e6 to 3e7 products on (`benchmarks/notes/gpu.md`); slower devices need more.
AUTO_WORK = 5e7  # products of two numbers; for fewer, the CPU is as fast
AUTO_DENSITY = 0.02  # of non-zero features; below it, a dense product wastes more than the device gains


def require_device(device: Any) -> None:
    """Raise a ValueError unless this is the name of a device."""
    if device not in DEVICES:
        raise ValueError(f'device={device!r} must be "cpu", "cuda" or "auto"')


def is_worth_it(n: int, nnz: int, entries: int) -> bool:
    """Whether "auto" picks the device for kernel values of n vectors with others, `nnz` of `entries` not 0."""
    return n * nnz >= AUTO_WORK and nnz >= AUTO_DENSITY * entries


class Device:
    """The device that a user chose; a failing one is given up, and the CPU goes on.

    Parameters
    ----------
    choice
        One of `DEVICES`.
    """

    def __init__(self, choice: str) -> None:
        self.choice = choice
        self.works = choice != "cpu"

    def attempt(self, compute: Callable[[Gpu], Any], drop: Callable[[], None]) -> Any:
        """The result of `compute` on the device; None if the device has failed, now or before.

        After any error, `drop` first lets go of what the caller has on the device.
        """
        gpu = self.gpu()
        if gpu is None:
            return None
        try:
            return compute(gpu)
        except BaseException as error:
            drop()
            if not gpu.has_raised(error):
                raise
            reason = reason_of(error)  # only its text: its frames would keep device memory
        gpu.release()
        self._give_up(reason)
        return None

    def gpu(self) -> Gpu | None:
        """The GPU; None if there is none or it is not to be used."""
        if not self.works:
            return None
        try:
            return find_gpu()
        except NoDevice as error:
            self.works = False
            if self.choice == "cuda":
                self._give_up(str(error))
            return None

    def release(self) -> None:
        """Give unused memory back to the device."""
        if self.works and find_gpu.cache_info().currsize:
            find_gpu().release()

    def _give_up(self, reason: str) -> None:
        self.works = False
        warn(f"device={self.choice!r} cannot be used ({reason}); the CPU computes from now on", RuntimeWarning)
