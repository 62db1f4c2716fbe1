"""Two-distance sets from strongly regular graphs: small, and near the bound on `rho`.

The adjacency matrix A of a strongly regular graph (v, k, lambda, mu) has besides k two eigenvalues,
the roots of `t^2 - (lambda - mu) t - (k - mu)`. The projection on the eigenspace of theta, of
dimension f, is

    (f/v) (I + (theta/k) A + ((-1-theta)/(v-k-1)) B),        B the complement,

a Gram matrix up to scale: v points on a sphere of R^f with cosine `theta/k` for neighbours and
`(-1-theta)/(v-k-1)` for the rest. Delsarte, Goethals and Seidel, Spherical codes and designs, Geom.
Dedicata 6 (1977); graphs: Brouwer and Van Maldeghem, Strongly regular graphs (2022).
"""

from collections.abc import Callable
from functools import cache
from itertools import combinations, product
from math import sqrt

import numpy as np
import torch
from torch import Tensor

from ...extras import extra
from ..binary.golay import octads
from ..code import Held, rho_of_cosines

with extra("codes"):
    import networkx as nx


class StronglyRegular(Held):
    """The vertices of a strongly regular graph in its smaller eigenspace.

    `named` has those of the graphs of this file. Rows are held in memory once they are asked for.
    """

    def __init__(
        self, name: str, parameters: tuple[int, int, int, int], make: Callable[[], nx.Graph]
    ):
        """Take the graph with the parameters (v, k, lambda, mu) that `make` makes on demand."""
        v, k, lam, mu = parameters
        root = sqrt((lam - mu) ** 2 + 4 * (k - mu))
        high, low = (lam - mu + root) / 2, (lam - mu - root) / 2
        # the trace of A is 0
        multiplicity = round((-k - low * (v - 1)) / root)
        theta, dim = min((high, multiplicity), (low, v - 1 - multiplicity), key=lambda e: e[1])
        self.parameters, self._make = parameters, make
        self._near, self._far = theta / k, (-1 - theta) / (v - k - 1)
        self.cosines = min(self._near, self._far), max(self._near, self._far)
        rho = rho_of_cosines(*self.cosines)
        super().__init__(v, dim, rho, "exact", f"the {name} graph")

    def _build(self) -> Tensor:
        A = nx.to_numpy_array(self._make())
        _check_parameters(A, self.parameters)
        gram = np.eye(len(A)) + self._near * A + self._far * (1 - np.eye(len(A)) - A)
        return torch.from_numpy(_factor(gram, self.dim))


def clebsch() -> nx.Graph:
    """Return the even-weight vertices of the 5-cube, joined at distance 4."""
    words = [w for w in product((0, 1), repeat=5) if sum(w) % 2 == 0]
    return _graph(words, lambda a, b: sum(x != y for x, y in zip(a, b, strict=True)) == 4)


def schlaefli() -> nx.Graph:
    """Return the 27 lines of a cubic surface, joined where they meet: a_i, b_i and c_ij."""
    lines = [(kind, i) for kind in "ab" for i in range(6)]
    lines += [("c", pair) for pair in combinations(range(6), 2)]

    def meet(first, second) -> bool:
        (kind, i), (other, j) = first, second
        if kind == other == "c":
            return not set(i) & set(j)
        if "c" in (kind, other):
            return i in j if other == "c" else j in i
        return kind != other and i != j

    return _graph(lines, meet)


def gewirtz() -> nx.Graph:
    """Return the blocks of S(3, 6, 22) that miss a point, joined where disjoint."""
    return _graph([b for b in _hexads() if 2 not in b], lambda a, b: not a & b)


def higman_sims() -> nx.Graph:
    """Return a point, the 22 points and the 77 blocks of S(3, 6, 22)."""

    def joined(a, b) -> bool:
        if isinstance(a, int) and isinstance(b, int):
            return a == -1
        if isinstance(a, int):
            return a in b
        return not a & b

    return _graph([-1, *range(2, 24), *_hexads()], joined)


def mclaughlin() -> nx.Graph:
    """Return 22 points and the 253 blocks of S(4, 7, 23), one point fixed.

    A point is joined to the blocks through the fixed point that miss it and to the other blocks
    through it; blocks of one kind that meet in one point, and of two kinds in three.
    """
    blocks = [b - {0} for b in octads() if 0 in b]

    def joined(a, b) -> bool:
        if isinstance(b, int):
            return False
        if isinstance(a, int):
            return (a in b) != (1 in b)
        return len(a & b) == (1 if (1 in a) == (1 in b) else 3)

    return _graph([*range(2, 24), *blocks], joined)


def apart() -> nx.Graph:
    """Return the 162 vertices of the McLaughlin graph not joined to the first one."""
    graph = mclaughlin()
    return graph.subgraph([x for x in graph if x != 0 and x not in graph[0]])


@cache
def named() -> tuple[StronglyRegular, ...]:
    """Return the codes of the graphs above."""
    return (
        StronglyRegular("Clebsch", (16, 5, 0, 2), clebsch),
        StronglyRegular("Schlaefli", (27, 10, 1, 5), schlaefli),
        StronglyRegular("Gewirtz", (56, 10, 0, 2), gewirtz),
        StronglyRegular("Higman-Sims", (100, 22, 0, 6), higman_sims),
        StronglyRegular("second subconstituent of the McLaughlin", (162, 56, 10, 24), apart),
        StronglyRegular("McLaughlin", (275, 112, 30, 56), mclaughlin),
    )


def _hexads() -> list[frozenset[int]]:
    """The 77 blocks of S(3, 6, 22), on the points 2 .. 23."""
    return [b - {0, 1} for b in octads() if {0, 1} <= b]


def _graph(vertices: list, joined: Callable[..., bool]) -> nx.Graph:
    """The graph on 0, 1, ... with an edge for i < j if `joined(vertices[i], vertices[j])`."""
    graph = nx.empty_graph(len(vertices))
    pairs = combinations(range(len(vertices)), 2)
    graph.add_edges_from((i, j) for i, j in pairs if joined(vertices[i], vertices[j]))
    return graph


def _check_parameters(A: np.ndarray, parameters: tuple[int, int, int, int]) -> None:
    v, k, lam, mu = parameters
    expected = k * np.eye(v) + lam * A + mu * (1 - np.eye(v) - A)
    if len(A) != v or not np.array_equal(A @ A, expected):
        raise ValueError(f"the graph is not strongly regular with parameters {parameters}")


def _factor(gram: np.ndarray, rank: int) -> np.ndarray:
    """X of shape (v, rank) with `X X^T = gram`, by Cholesky steps on independent rows."""
    rest = gram.copy()
    X = np.zeros((len(gram), rank))
    for column in range(rank):
        pivot = int(np.argmax(np.diag(rest) > 1e-6))
        X[:, column] = rest[:, pivot] / sqrt(rest[pivot, pivot])
        rest -= np.outer(X[:, column], X[:, column])
    return X
