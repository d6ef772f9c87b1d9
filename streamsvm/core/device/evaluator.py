"""A model's blocks of kernel values, from the CPU or from a device."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from streamsvm.core import blocks
from streamsvm.core.blocks import BLOCK, NO_PRODUCTS, Queries
from streamsvm.core.costs import FEW_FEATURES, TASK, VALUE
from streamsvm.core.decision import Decision
from streamsvm.core.device.choice import Device, is_worth_it
from streamsvm.core.device.gpu import Gpu
from streamsvm.core.device.mirror import Mirror
from streamsvm.core.expansion import WIDTH, Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.core.storage import n_members
from streamsvm.core.threads import in_order, threads_for

QUERIES_AT_ONCE = 8192  # in a block for a device, at most
HOST_BYTES = 64 << 20  # of such a block, before its zeros are left out


class Evaluator:
    """Computes a model's blocks of kernel values: on the CPU, or on a device while it works and is worth it.

    Parameters
    ----------
    device
        One of `DEVICES`.
    """

    def __init__(self, device: str) -> None:
        self.device = Device(device)
        self.mirror: Mirror | None = None

    def queries_at_once(self, s: Expansion, n_queries: int) -> int:
        """The best size of a block of queries."""
        width = int(s.counts[WIDTH])
        if not self._pays(s, n_queries, n_queries * width) or self.device.gpu() is None:
            return BLOCK
        return min(QUERIES_AT_ONCE, max(BLOCK, HOST_BYTES // (8 * max(width, 1))))

    def decide(self, s: Expansion, kernel: Kernel, q: Queries, b: float) -> np.ndarray:
        """f(x) = sum_s alpha_s k(x_s, x) + b for each query, (B,)."""
        return np.concatenate([np.empty(0), *self.decide_blocks(s, kernel, [q], b)])

    def decide_blocks(
        self, s: Expansion, kernel: Kernel, blocks_of_queries: Iterable[Queries], b: float, n_queries: int = 0
    ) -> Iterator[np.ndarray]:
        """f(x) for the queries of each block, on several cores if the number of queries is given and large enough."""
        decision = Decision(s, kernel, b)

        def decide(q: Queries) -> np.ndarray:
            if self._pays(s, len(q.sq), len(q.indices)):
                f = self._attempt(lambda mirror: mirror.decide(s, kernel, q))
                if f is not None:
                    return np.asarray(f + b)
            return decision.of_queries(q)

        alone = self.device.works or VALUE * BLOCK * decision.n_slots < TASK
        n_threads = 1 if alone else threads_for(VALUE * n_queries * decision.n_slots)
        yield from in_order(decide, blocks_of_queries, n_threads)

    def decide_table(
        self, s: Expansion, kernel: Kernel, table: np.ndarray, columns: np.ndarray, b: float
    ) -> np.ndarray | None:
        """f(x) for the rows of a table whose features have these columns, NaN for too large rows.

        None if compressed rows are the faster way.
        """
        if table.size == 0:
            return None
        if self._pays(s, len(table), table.size):
            f = self._attempt(lambda mirror: mirror.decide_table(s, kernel, table, columns))
            if f is not None:
                return np.asarray(f + b)
        decision = Decision(s, kernel, b)
        return decision.of_table(table, columns) if decision.takes(table) else None

    def products(self, s: Expansion, q: Queries, within: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """P and, if `within`, G for a block of examples (see `blocks`); both are empty where rows are faster."""
        # With few features, sending the products back takes as long as adding them.
        dense = len(q.indices) >= FEW_FEATURES * len(q.sq) or self.device.choice == "cuda"
        if dense and self._pays(s, len(q.sq), len(q.indices)):
            products = self._attempt(lambda mirror: mirror.products(s, q))
            if products is not None:
                return products
        return (
            blocks.inner_products(s, q, within) if blocks.prefers_product(s, q, within) else (NO_PRODUCTS, NO_PRODUCTS)
        )

    def _pays(self, s: Expansion, n_queries: int, nnz: int) -> bool:
        """Whether to try the device for queries with `nnz` non-zero features."""
        n = n_members(s)
        if not self.device.works or n == 0 or n_queries == 0:
            return False
        return self.device.choice == "cuda" or is_worth_it(n, nnz, n_queries * int(s.counts[WIDTH]))

    def _attempt(self, compute: Callable[[Mirror], Any]) -> Any:
        return self.device.attempt(lambda gpu: compute(self._mirror_on(gpu)), self._drop)

    def _drop(self) -> None:
        self.mirror = None

    def _mirror_on(self, gpu: Gpu) -> Mirror:
        if self.mirror is None:
            self.mirror = Mirror(gpu)
        return self.mirror
