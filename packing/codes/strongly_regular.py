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

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from packing import checks
from packing.codes.code import Code, rho_of_cosines


class StronglyRegular(Code):
    """The vertices of a strongly regular graph in its smaller eigenspace; rows are held in memory.

    `GRAPHS` names the graphs that are here, `triangular` makes one for every dimension.
    """

    def __init__(self, graph: nx.Graph, name: str):
        """Find the eigenspace of a graph, in the order of its vertices.

        Raises:
            ValueError: the graph is not strongly regular, complete or empty.
        """
        A = nx.to_numpy_array(graph)
        v, k, lam, mu = _parameters(A)
        root = sqrt((lam - mu) ** 2 + 4 * (k - mu))
        theta, dim = min(_eigenspaces(v, k, lam - mu, root), key=lambda found: found[1])
        near, far = theta / k, (-1 - theta) / (v - k - 1)
        self.cosines = (min(near, far), max(near, far))
        super().__init__(v, dim, rho_of_cosines(*self.cosines), "exact", name)
        gram = np.eye(v) + near * A + far * (1 - np.eye(v) - A)
        self._stored = torch.from_numpy(_factor(gram, dim))

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        return self._stored.to(indices.device, dtype)[indices]


def triangular(n: int) -> StronglyRegular:
    """Return the edge midpoints of the simplex of R^(n-1), n >= 5: n(n-1)/2 points, `1/sqrt 2`.

    n = 5 (the complement of the Petersen graph) attains the bound on `rho`.

    Raises:
        TypeError, ValueError: not an integer, or too small.
    """
    checks.check_count(n, "n", 5)
    graph = nx.line_graph(nx.complete_graph(n))
    return StronglyRegular(graph, f"the edge midpoints of a simplex of R^{n - 1}")


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


def mclaughlin_apart() -> nx.Graph:
    """Return the 162 vertices of the McLaughlin graph not joined to the first one."""
    graph = mclaughlin()
    return graph.subgraph([x for x in graph if x != 0 and x not in graph[0]])


GRAPHS: dict[str, Callable[[], nx.Graph]] = {
    "Clebsch": clebsch,
    "Schlaefli": schlaefli,
    "Gewirtz": gewirtz,
    "Higman-Sims": higman_sims,
    "McLaughlin": mclaughlin,
    "McLaughlin, second subconstituent": mclaughlin_apart,
}


@cache
def named() -> tuple[StronglyRegular, ...]:
    """Return the codes of `GRAPHS`."""
    return tuple(StronglyRegular(make(), f"the graph {name}") for name, make in GRAPHS.items())


@cache
def octads() -> tuple[frozenset[int], ...]:
    """Return the 759 blocks of S(5, 8, 24): the words of weight 8 of the extended Golay code.

    Its words are spanned by the shifts of the squares modulo 23, with a parity bit.
    """
    squares = {x * x % 23 for x in range(1, 23)}
    word = np.array([x in squares for x in range(23)], dtype=np.uint8)
    cyclic = np.array([np.roll(word, shift) for shift in range(12)])
    generators = np.hstack([cyclic, cyclic.sum(axis=1, keepdims=True) % 2])
    messages = (np.arange(4096)[:, None] >> np.arange(12)) & 1
    words = messages @ generators % 2
    return tuple(frozenset(np.flatnonzero(w).tolist()) for w in words[words.sum(axis=1) == 8])


def _hexads() -> list[frozenset[int]]:
    """The 77 blocks of S(3, 6, 22), on the points 2 .. 23."""
    return [b - {0, 1} for b in octads() if {0, 1} <= b]


def _graph(vertices: list, joined: Callable[..., bool]) -> nx.Graph:
    """The graph on 0, 1, ... with an edge for i < j if `joined(vertices[i], vertices[j])`."""
    graph = nx.empty_graph(len(vertices))
    pairs = combinations(range(len(vertices)), 2)
    graph.add_edges_from((i, j) for i, j in pairs if joined(vertices[i], vertices[j]))
    return graph


def _parameters(A: np.ndarray) -> tuple[int, int, int, int]:
    """(v, k, lambda, mu)."""
    v, k = len(A), int(A[0].sum())
    paths = (A @ A).astype(int)
    joined, apart = A == 1, (A == 0) & ~np.eye(v, dtype=bool)
    if not (joined.any() and apart.any()):
        raise ValueError("the graph is complete or empty, and so not strongly regular")
    lam, mu = int(paths[joined][0]), int(paths[apart][0])
    expected = np.where(joined, lam, np.where(apart, mu, k))
    if not np.array_equal(paths, expected):
        raise ValueError(f"the graph of {v} vertices is not strongly regular")
    return v, k, lam, mu


def _eigenspaces(v: int, k: int, difference: int, root: float) -> list[tuple[float, int]]:
    """Eigenvalues other than k, from trace 0 of the adjacency matrix, and their multiplicities."""
    high, low = (difference + root) / 2, (difference - root) / 2
    multiplicity = round((-k - low * (v - 1)) / root)
    return [(high, multiplicity), (low, v - 1 - multiplicity)]


def _factor(gram: np.ndarray, rank: int) -> np.ndarray:
    """X of shape (v, rank) with `X X^T = gram`, by Cholesky steps on independent rows."""
    rest = gram.copy()
    X = np.zeros((len(gram), rank))
    for column in range(rank):
        pivot = int(np.argmax(np.diag(rest) > 1e-6))
        X[:, column] = rest[:, pivot] / sqrt(rest[pivot, pivot])
        rest -= np.outer(X[:, column], X[:, column])
    return X
