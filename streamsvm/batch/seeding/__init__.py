"""Seeds: the solution of one problem as a start for the next, when examples leave and enter or C changes.

    maximise  y'alpha - 1/2 alpha'K alpha    subject to    sum_i alpha_i = 0,   lo_i <= alpha_i <= hi_i

The problems of a cross-validation differ in their empty boxes: those of the examples R that *leave* the training set
become empty, those of the examples T that *enter* it open, all others S stay.  Along a path in C all boxes grow.  A
seed turns the solution of one problem into a feasible alpha for the next, with g = y - K alpha brought up to date.
`smo.train` goes on from there to the tolerance.  So a seed decides how long a training takes, but not where it ends.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
alpha, g  coefficients and gradient                                        (n,) float64
mu        bias of the previous solution                                    float
R, T      numbers of the examples that leave, that enter                   (r,), (t,) int64
S         the examples that stay                                           --
M         the free examples among S                                        (m,) int64
C, C'     bound before and after                                           float
========= ================================================================ ================

Begin with `members`, which solves the folds among few examples, and `methods`, the tables of all seeds.  `chains` and
`ato` start from the fold before, `full` from the solution over all examples, `exact` from either, `along_c` from
another C; `choice` picks the cheapest.

Sources: Wen et al., "Improving Efficiency of SVM k-fold Cross-validation by Alpha Seeding", for ATO (Algorithm 1), MIR
(equation (17)) and SIR (Algorithm 3) over k folds, and for AVG and TOP over single examples, from earlier work; Bin Li,
chapter on parameter selection, 4.2.1 and 4.2.2, for reuse, scaling, Single and Multiple along C.  One deviation holds
for all: "adjust uniformly" is a projection on the sum (`repair`).  It goes to T first.  T may be unable to take it all,
which the source forgets; the rest goes to M, then to all of S.  TOP and AVG take k folds as well as single examples.

Measured: sharing kernel rows between the folds is worth more than any seed, and so are the members.  For k <= 4 no seed
beats a cold start.  For k = 10 seeds save a quarter of the steps, for leave-one-out three quarters.  The exact path
saves all steps where it is affordable.
"""

from streamsvm.batch.seeding import chains, choice, exact
from streamsvm.batch.seeding.choice import Choice, choose
from streamsvm.batch.seeding.members import Members, members_of, refined, train
from streamsvm.batch.seeding.methods import C_SEEDS, SEEDS
from streamsvm.batch.seeding.start import Start

__all__ = [
    "C_SEEDS",
    "SEEDS",
    "Choice",
    "Members",
    "Start",
    "chains",
    "choice",
    "choose",
    "exact",
    "members_of",
    "refined",
    "train",
]
