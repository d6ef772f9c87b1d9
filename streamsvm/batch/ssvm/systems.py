"""Ways of solving H z = r for Newton's method, H = I + D_S' D_S, while the support set S changes from step to step.

=============== ==================================================================================== ================
class           what it keeps, and does when S changes                                               a step costs
=============== ==================================================================================== ================
`Recomputed`    nothing: H is made and factored anew                                                 l p^2 + p^3 / 3
`Cholesky`      the Gram matrix D D': H or I + A A', the smaller of the two, is factored anew        l^3 / 3
`InverseOfH`    H^-1, updated by the r rows that enter and leave ("Strategy I")                      r p^2
`InverseOnS`    B = (I + D_S D_S')^-1, its rows and columns added and removed ("Strategy II")        r l^2
=============== ==================================================================================== ================

l is the size of S, p the number of columns of D.  Formulas (A = D_S, the symbols of `newton`):

    H^-1 = I - A' (I + A A')^-1 A                                                          Sherman, Morrison, Woodbury
    rows V with signs s (+1 enters, -1 leaves), W = H^-1 V':   H^-1 -= W (diag(s) + V W)^-1 W'              Strategy I
    R leaves:  B_KK - B_KR B_RR^-1 B_RK,  K = S - R                                                        Strategy II
    I enters:  U = A A_I', Z = (I + A_I A_I' - U' B U)^-1:  [[B + B U Z U' B, -B U Z], [-Z U' B, Z]]
    columns c of D are held at 0:  H^-1 -= H^-1_:c (H^-1_cc)^-1 H^-1_c:,   B += B A_c (I - A_c' B A_c)^-1 A_c' B

An updated inverse drifts.  `newton.direction` sees this in the residual and makes the inverse anew.  Then z comes from
the Cholesky factor itself, which loses fewer digits than the explicit inverse.  Strategy II still loses them if there
are fewer features than support vectors: H^-1 is then the difference of two large matrices.  `Cholesky` takes over.

Source: Tseng, Lee, "Rank-r Updating Techniques for Fast Exact Cross-Validation".  Deviations:

- Columns can be held at 0, which its nonlinear cross-validation leaves out.
- After large changes the inverse is made anew where this is cheaper.
- A factor by QR replaces Cholesky's if that does not exist in float64.
"""

from functools import cached_property

import numpy as np

NONE = np.zeros(0, np.int64)
WORTH_UPDATING = 0.5  # of the factored rows and columns; with more changed rows, a new factor costs less


def factor_of(A: np.ndarray, square: np.ndarray | None = None) -> np.ndarray:
    """The triangular R with R'R = I + A'A (`square` is A'A if known); by QR if Cholesky loses the I to rounding."""
    from scipy.linalg import cholesky, qr  # loads as long as numpy; only some learners need it

    M = A.T @ A if square is None else square
    M.flat[:: len(M) + 1] += 1.0
    try:
        return cholesky(M, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return qr(np.vstack([np.eye(A.shape[1]), A]), mode="r", check_finite=False)[0][: A.shape[1]]


def solve_by(R: np.ndarray, r: np.ndarray) -> np.ndarray:
    """(R'R)^-1 r."""
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve((R, False), r, check_finite=False))


class Rows:
    """The matrix D, and its Gram matrix D D' if that is not much larger; all systems over D share it."""

    def __init__(self, D: np.ndarray) -> None:
        self.D = D
        self._shares = len(D) <= 2 * D.shape[1]

    @cached_property
    def _gram(self) -> np.ndarray:
        return np.asarray(self.D @ self.D.T)

    def products(self, a: np.ndarray, b: np.ndarray, held: np.ndarray) -> np.ndarray:
        """<d_i, d_j> for i in a and j in b, without the held columns."""
        block = self._gram[np.ix_(a, b)] if self._shares else self.D[a] @ self.D[b].T
        return block - self.D[np.ix_(a, held)] @ self.D[np.ix_(b, held)].T if len(held) else block


class System:
    """Solves with H = I + D_S' D_S."""

    support: np.ndarray  # the support set of the system, (n,) bool

    def __init__(self, rows: Rows, held: np.ndarray = NONE) -> None:
        self.rows, self.held = rows, held
        self.is_placed = False  # whether it has a support set yet
        self.is_fresh = False  # whether the factor or inverse was made for this S, not updated
        self.refreshed = 0  # number of times that it was made anew

    def move(self, support: np.ndarray) -> None:
        """Change to this support set, (n,) bool."""
        changed = np.flatnonzero(self.support != support) if self.is_placed else None
        if changed is not None and len(changed) == 0:
            return
        self.support, self.is_placed = support, True
        if changed is not None and self._update(changed):
            self.is_fresh = False
        else:
            self.refresh()

    def refresh(self) -> None:
        """Make the factor or inverse anew for the present support set."""
        self._make()
        self.is_fresh, self.refreshed = True, self.refreshed + 1

    def solve(self, r: np.ndarray) -> np.ndarray:
        """H^-1 r, for one or several columns r that are 0 where u is held."""
        raise NotImplementedError

    def holding(self, held: np.ndarray) -> "System":
        """A new system at the same support set, with these columns held at 0; this one stays as it is."""
        return type(self)(self.rows, held)

    def _make(self) -> None:
        raise NotImplementedError

    def _update(self, changed: np.ndarray) -> bool:
        """Update after these examples entered or left; False if it must be made anew instead."""
        return False

    def _members(self) -> np.ndarray:
        """A = D_S, a copy, with 0 in the held columns."""
        A = self.rows.D[self.support]
        A[:, self.held] = 0.0
        return A


class Recomputed(System):
    """H, made and factored for each support set."""

    def _make(self) -> None:
        self.R = factor_of(self._members())

    def solve(self, r: np.ndarray) -> np.ndarray:
        return solve_by(self.R, r)


class Cholesky(System):
    """H or I + A A', the smaller of them, factored for each support set."""

    def _make(self) -> None:
        self.A = self._members()
        l, p = self.A.shape
        if p <= l:
            self.R = factor_of(self.A)
        else:
            ids = np.flatnonzero(self.support)
            self.R = factor_of(self.A.T, self.rows.products(ids, ids, self.held))

    def solve(self, r: np.ndarray) -> np.ndarray:
        if len(self.R) == self.A.shape[1]:
            return solve_by(self.R, r)
        return r - self.A.T @ solve_by(self.R, self.A @ r)


class InverseOfH(System):
    """Strategy I: H^-1, updated by the rows that enter and leave."""

    def _make(self) -> None:
        self.R = factor_of(self._members())
        self.inverse = solve_by(self.R, np.eye(len(self.R)))
        self.inverse[self.held] = 0.0
        self.inverse[:, self.held] = 0.0

    def _update(self, changed: np.ndarray) -> bool:
        if len(changed) > WORTH_UPDATING * (np.count_nonzero(self.support) + len(self.inverse)):
            return False
        V = self.rows.D[changed]
        W = self.inverse @ V.T
        T = V @ W
        T.flat[:: len(T) + 1] += np.where(self.support[changed], 1.0, -1.0)
        try:
            self.inverse -= W @ np.linalg.solve(T, W.T)
        except np.linalg.LinAlgError:
            return False
        return True

    def solve(self, r: np.ndarray) -> np.ndarray:
        return solve_by(self.R, r) if self.is_fresh else self.inverse @ r

    def holding(self, held: np.ndarray) -> "InverseOfH":
        new = InverseOfH(self.rows, held)
        new.is_placed, new.support, new.inverse = True, self.support, self.inverse.copy()
        if len(held):
            across = self.inverse[:, held]
            new.inverse -= across @ np.linalg.solve(across[held], across.T)
            new.inverse[held] = 0.0
            new.inverse[:, held] = 0.0
        return new


class InverseOnS(System):
    """Strategy II: B = (I + A A')^-1, whose rows and columns come and go with the examples of S."""

    ids: np.ndarray  # of the rows and columns of B
    B: np.ndarray

    def _make(self) -> None:
        self.ids = np.flatnonzero(self.support)
        self.R = factor_of(self._members().T, self.rows.products(self.ids, self.ids, self.held))
        self.B = solve_by(self.R, np.eye(len(self.R)))

    def _update(self, changed: np.ndarray) -> bool:
        if len(changed) > WORTH_UPDATING * np.count_nonzero(self.support):
            return False
        try:
            self._remove(~self.support[self.ids])
            self._add(changed[self.support[changed]])
        except np.linalg.LinAlgError:
            return False
        return True

    def _remove(self, leaves: np.ndarray) -> None:
        if not leaves.any():
            return
        keeps = ~leaves
        across = self.B[np.ix_(keeps, leaves)]
        correction = across @ np.linalg.solve(self.B[np.ix_(leaves, leaves)], across.T)
        self.B, self.ids = self.B[np.ix_(keeps, keeps)] - correction, self.ids[keeps]

    def _add(self, enter: np.ndarray) -> None:
        if len(enter) == 0:
            return
        U = self.rows.products(self.ids, enter, self.held)
        BU = self.B @ U
        M = self.rows.products(enter, enter, self.held) - U.T @ BU
        M.flat[:: len(M) + 1] += 1.0
        Z = np.linalg.inv(M)
        BUZ = BU @ Z
        self.B = np.block([[self.B + BUZ @ BU.T, -BUZ], [-BUZ.T, Z]])
        self.ids = np.concatenate([self.ids, enter])

    def solve(self, r: np.ndarray) -> np.ndarray:
        inner = (self.rows.D @ r)[self.ids]
        coefficients = np.zeros((len(self.rows.D), *r.shape[1:]))
        coefficients[self.ids] = solve_by(self.R, inner) if self.is_fresh else self.B @ inner
        z = r - self.rows.D.T @ coefficients
        z[self.held] = 0.0
        return z

    def holding(self, held: np.ndarray) -> "InverseOnS":
        new = InverseOnS(self.rows, held)
        new.is_placed, new.support = True, self.support
        new.ids, new.B = self.ids, self.B  # never changed in place
        if len(held):
            A_c = self.rows.D[np.ix_(self.ids, held)]
            BA = self.B @ A_c
            M = np.eye(len(held)) - A_c.T @ BA
            new.B = self.B + BA @ np.linalg.solve(M, BA.T)
        return new
