"""The kernels by name, and what other rooms ask about each; a command line lists them without loading the engine."""

from typing import NamedTuple


class About(NamedTuple):
    """What other rooms ask about a kernel.

    parameters
        Of `gamma`, `degree` and `coef0`, those that its formula has.
    formula
        Its formula.
    on_gpu
        Its formula in C: from the inner product p and the squared norms, for one element of the type `real`.
    """

    parameters: tuple[str, ...]
    formula: str
    on_gpu: str


KERNELS = {
    "rbf": About(("gamma",), "exp(-gamma ||x - z||^2)", "exp(-gamma * max(sq + sq_q - 2 * p, {real}(0)))"),
    "linear": About((), "<x, z>", "p"),
    "poly": About(("gamma", "degree", "coef0"), "(gamma <x, z> + coef0)^degree", "pow(gamma * p + coef0, degree)"),
    "sigmoid": About(("gamma", "coef0"), "tanh(gamma <x, z> + coef0)", "tanh(gamma * p + coef0)"),
}
