"""Where a search starts: start k of seed s is always the same cloud.

Kinds take turns. Random ones reach most basins; lattice pieces and symmetric clouds reach the
regular optima that random ones seldom meet; perturbed ones begin at clouds that are given, of as
many points or of one more or fewer.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cloud = NDArray[np.floating[Any]]

KINDS = ("gaussian", "ball", "sphere", "lattice", "symmetric")
MU = (-3.5, -1.5)
"""Range of the logarithm (base 10) of the first barrier parameter."""


def kind(index: int, given: bool = False, kinds: tuple[str, ...] = KINDS) -> str:
    """Return the kind of start `index`; with clouds given every second one is "perturbed"."""
    if given and index % 2:
        return "perturbed"
    return kinds[(index // 2 if given else index) % len(kinds)]


def draw(
    num_points: int,
    dim: int,
    seed: int,
    index: int,
    given: Sequence[Cloud] = (),
    kinds: tuple[str, ...] = KINDS,
) -> tuple[Cloud, float]:
    """Return a start, shape (num_points, dim), and its first barrier parameter.

    Args:
        num_points: n, at least 2.
        dim: d, at least 1.
        seed: of the search, at least 0.
        index: k, at least 0; the start depends on (seed, k) and on `given` alone.
        given: clouds of n-1, n or n+1 points in R^d that perturbed starts take in turn.
        kinds: those that take turns.
    """
    random = np.random.default_rng([seed, index])
    chosen = kind(index, bool(given), kinds)
    if chosen == "perturbed":
        cloud = _perturbed(num_points, given[index // 2 % len(given)], random)
    else:
        cloud = _DRAWS[chosen](num_points, dim, random)
    return cloud, float(10.0 ** random.uniform(*MU))


def _gaussian(n: int, d: int, random: np.random.Generator) -> Cloud:
    return random.standard_normal((n, d))


def _sphere(n: int, d: int, random: np.random.Generator) -> Cloud:
    points = random.standard_normal((n, d))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    # on a line the sphere has two points only
    return points + 0.05 * random.standard_normal((n, d))


def _ball(n: int, d: int, random: np.random.Generator) -> Cloud:
    points = random.standard_normal((n, d))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points * random.random((n, 1)) ** (1.0 / d)


def _lattice(n: int, d: int, random: np.random.Generator) -> Cloud:
    """The n points of the root lattice A_d nearest to a random centre, slightly moved."""
    points = _root_lattice(d, n)
    centre = random.uniform(size=d) @ _root_basis(d)
    nearest = np.argsort(((points - centre) ** 2).sum(axis=1))[:n]
    return points[nearest] + random.uniform(0.0, 0.15) * random.standard_normal((n, d))


def _root_basis(d: int) -> Cloud:
    """Unit vectors at 60 degrees to each other."""
    return np.linalg.cholesky((np.eye(d) + np.ones((d, d))) / 2.0)


@functools.cache
def _root_lattice(d: int, n: int) -> Cloud:
    """The points of A_d with small coefficients, more than n."""
    low, high = -1, 2
    while (high - low + 1) ** d < 4 * n:
        low, high = low - 1, high + 1
    if (high - low + 1) ** d <= 20_000:
        coefficients = np.array(list(itertools.product(range(low, high + 1), repeat=d)))
    else:  # sums of few basis vectors
        few = [c for k in range(4) for c in itertools.combinations(range(d), k)]
        signs = [s for k in range(4) for s in itertools.product((-1, 1), repeat=k)]
        rows = [
            [dict(zip(c, s, strict=True)).get(i, 0) for i in range(d)]
            for c in few
            for s in signs
            if len(c) == len(s)
        ]
        coefficients = np.array(rows)
    return coefficients @ _root_basis(d)


def _symmetric(n: int, d: int, random: np.random.Generator) -> Cloud:
    """Orbits of a rotation of random order; points left over lie where it fixes them, if it can."""
    order = int(random.integers(2, min(n, 12) + 1))
    turns = random.integers(0, order, size=d // 2)
    if d >= 2:
        turns[0] = 1
    matrix = np.eye(d)
    for plane, turn in enumerate(turns):
        angle = 2.0 * np.pi * turn / order
        c, s = np.cos(angle), np.sin(angle)
        matrix[2 * plane : 2 * plane + 2, 2 * plane : 2 * plane + 2] = [[c, -s], [s, c]]
    if d % 2 and order % 2 == 0:
        matrix[-1, -1] = random.choice([-1.0, 1.0])
    powers = np.stack([np.linalg.matrix_power(matrix, k) for k in range(order)])
    orbits, left = divmod(n, order)
    points = np.einsum("kij,mj->mki", powers, _gaussian(orbits, d, random)).reshape(-1, d)
    rest = _gaussian(left, d, random) @ powers.mean(axis=0).T
    noise = 10.0 ** random.uniform(-4.0, -1.0)
    return np.concatenate([points, rest]) + noise * random.standard_normal((n, d))


def _perturbed(n: int, cloud: Cloud, random: np.random.Generator) -> Cloud:
    """A given cloud, a point taken away or added at random, or one moved, and noise on all."""
    d = cloud.shape[1]
    distances = np.linalg.norm(cloud[:, None] - cloud[None], axis=2)
    spacing = np.min(distances + np.max(distances) * np.eye(len(cloud)))
    centre, radius = cloud.mean(axis=0), 0.5 * np.max(distances)
    points = random.permutation(cloud)
    if len(points) >= n and random.random() < 0.5:
        points = points[: n - 1]
    points = points[:n]
    added = centre + radius * _ball(n - len(points), d, random)
    noise = spacing * random.uniform(0.0, 0.5)
    return np.concatenate([points, added]) + noise * random.standard_normal((n, d))


_DRAWS = {
    "gaussian": _gaussian,
    "ball": _ball,
    "sphere": _sphere,
    "lattice": _lattice,
    "symmetric": _symmetric,
}
