"""The metric of hidden states: what moves log-odds is `S Sigma^(1/2)`, not `S`.

Hidden states of second moment Sigma lie in ellipsoids rather than in balls:

    E_R = {h : h^T Sigma^-1 h <= R^2}
    max_{h in E_R} <s_i - s_j, h> = R ||(s_i - s_j) Sigma^(1/2)||

So distances, diameter and separation in the metric are those of `T = S Sigma^(1/2)`. As
`<A,S> = <A Sigma^(-1/2), T>`, the momentum in the metric is `A Sigma^(-1/2)`, and what holds for
plain rows holds for these two. Derivation: docs/explanation/metric.md.
"""

import copy

import torch
from torch import Tensor

from . import checks
from .rows import CentredRows, times_power_of_two

NOISE = 8
"""Eigenvalues up to this many roundings of the dtype, relative to `||Sigma||_F`, count as zero."""
LEAST = 1e-10
"""Smallest eigenvalue of the damped matrix, relative to the largest."""
LARGEST = 1e30
"""Mean eigenvalues from the inverse of this to this keep every product within float64."""
DAMPING = 1e-2
"""Of a matrix estimated from data."""


class Metric:
    """The symmetric root of a second moment and its inverse, float64.

        Sigma + damping tr(Sigma)/d I = root root,   inverse_root = root^-1

    Damping adds to every direction a part of the mean eigenvalue, so directions without data are
    not free. It makes the ellipsoid larger, so a bound in the damped metric holds in the undamped
    one too. The metric is that of `root` as computed: `root root` is the damped matrix to float64
    rounding relative to its largest eigenvalue.

    Attributes:
        root: `Sigma^(1/2)`, shape (d, d), float64, symmetric.
        inverse_root: `Sigma^(-1/2)`, shape (d, d), float64, symmetric.
        condition: condition number of `root`.
        error: bound on the relative error that rounding leaves in a diameter in the metric,
            `(d^(3/2) + 4) 2^-52` times the condition number.
    """

    root: Tensor
    inverse_root: Tensor
    condition: float
    error: float

    @torch.no_grad()
    def __init__(self, sigma: Tensor, *, damping: float = 0.0):
        """Take the second moment, such as `H^T H / n` of hidden states H.

        Args:
            sigma: shape (d, d), symmetric positive semidefinite, float32 or float64; its mean
                eigenvalue from 1e-30 to 1e30.
            damping: part of the mean eigenvalue that is added to each, at least 0.

        Raises:
            TypeError: not a dense real tensor of float32 or float64.
            ValueError: not square, not symmetric, NaN or infinite entries, zero, a negative
                eigenvalue beyond rounding, or a damped eigenvalue below 1e-10 of the largest.
        """
        checks.check_real(sigma, "metric")
        if sigma.dtype not in (torch.float32, torch.float64):
            raise TypeError(
                f"metric has dtype {sigma.dtype}, too short for its small eigenvalues; form it in "
                f"torch.float32 or torch.float64"
            )
        if sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1] or not len(sigma):
            raise ValueError(
                f"metric has shape {tuple(sigma.shape)}, expected (d, d), the second moment of "
                f"the hidden states; that of states H of shape (n, d) is Metric.of_hidden(H)"
            )
        checks.check_finite(sigma, "metric")
        damping = checks.check_size(damping, "damping")
        values, vectors = _eigen(sigma)
        values = values.clamp_min(0.0) + damping * float(values.clamp_min(0.0).mean())
        least, most = float(values[0]), float(values[-1])
        if least < LEAST * most:
            raise ValueError(
                f"metric has {int((values < LEAST * most).sum())} of {len(values)} directions "
                f"without hidden states (eigenvalues below {LEAST:g} of the largest, or rounding "
                f"of it), in which updates would be unbounded; give damping, such as "
                f"Metric(sigma, damping={DAMPING:g})"
            )
        roots = values.sqrt()
        self.root = vectors * roots @ vectors.T
        self.inverse_root = vectors / roots @ vectors.T
        self.condition = (most / least) ** 0.5
        self.error = (len(values) ** 1.5 + 4) * 2.0**-52 * self.condition

    @classmethod
    def of_hidden(
        cls, hidden: Tensor, *, damping: float = DAMPING, mask: Tensor | None = None
    ) -> "Metric":
        """Return the metric of hidden states: Sigma is `H^T H / n`.

        Args:
            hidden: H, shape (..., d), one state per token, floating dtype.
            damping: see the class.
            mask: bool, shape (...), True for the states that count, such as those of real tokens.

        Raises:
            TypeError, ValueError: an argument is not as above, or no state counts.
        """
        checks.check_real(hidden, "hidden")
        if hidden.ndim == 0 or mask is not None and mask.shape != hidden.shape[:-1]:
            raise ValueError(
                f"hidden has shape {tuple(hidden.shape)} and mask "
                f"{None if mask is None else tuple(mask.shape)}, expected (..., d) and (...)"
            )
        rows = hidden.flatten(0, -2) if mask is None else hidden[mask]
        checks.check_cloud(rows, "hidden")
        if not len(rows):
            raise ValueError(
                f"no state counts: hidden has shape {tuple(hidden.shape)}; give at least one"
            )
        total = rows.new_zeros(rows.shape[1], rows.shape[1], dtype=torch.float64)
        for block in rows.split(max(1, (1 << 22) // rows.shape[1])):
            total.addmm_(block.double().T, block.double())
        return cls(total / len(rows), damping=damping)

    @classmethod
    def of_momentum(
        cls, A: Tensor, *, damping: float = DAMPING, mask: Tensor | None = None
    ) -> "Metric":
        """Return the metric that a momentum gives of itself: Sigma is proportional to `A^T A`.

        The covariance of a softmax gradient is about `diag(p) (x) Sigma`, so the right Gram matrix
        of a centred momentum estimates Sigma up to a factor where noise prevails. The factor is
        fixed by a mean eigenvalue of 1, as behind an RMS norm; whiten by row lengths first for a
        matrix that frequent tokens do not decide.

        Args:
            A: shape (V, d), floating dtype; centred here.
            damping: see the class.
            mask: bool, shape (V,), True for the rows that take part.

        Raises:
            TypeError, ValueError: an argument is not as above, or all rows are equal.
        """
        checks.check_cloud(A, "A")
        checks.check_mask(mask, A)
        gram = A.new_zeros(A.shape[1], A.shape[1], dtype=torch.float64)
        for block in CentredRows(A, mask):
            gram.addmm_(block.T, block)
        mean = float(gram.trace()) / len(gram)
        if mean == 0.0:
            raise ValueError("A has equal rows and no Gram matrix; give one that has a direction")
        return cls(gram / mean, damping=damping)

    @property
    def dim(self) -> int:
        """The dimension d of the hidden states."""
        return len(self.root)

    @property
    def sigma(self) -> Tensor:
        """The damped second moment, `root root`, shape (d, d), float64."""
        return self.root @ self.root

    def stretched(self, S: Tensor) -> Tensor:
        """Return `S Sigma^(1/2)`, shape (V, d), float64: an update as the metric sees it."""
        return S.double() @ self.root

    def whitened(self, A: Tensor) -> Tensor:
        """Return `A Sigma^(-1/2)`, shape (V, d), float64: the momentum that goes with it.

        Also the way back from `T = S Sigma^(1/2)` to S.
        """
        return A.double() @ self.inverse_root

    def norms(self, hidden: Tensor) -> Tensor:
        """Return `sqrt(h^T Sigma^-1 h)` of hidden states: the R of the ellipsoid each lies on.

        Their mean square over the states that Sigma was made of is d, less with damping.

        Args:
            hidden: shape (..., d).

        Returns:
            Shape (...), float64.
        """
        return self.whitened(hidden).norm(dim=-1)

    def to(self, device: torch.device | str) -> "Metric":
        """Return this metric on a device, itself if it is there."""
        root = self.root.to(device)
        if root is self.root:
            return self
        moved = copy.copy(self)
        moved.root, moved.inverse_root = root, self.inverse_root.to(device)
        return moved

    def __repr__(self) -> str:
        """Dimension and condition number of the root."""
        return f"Metric(d={self.dim}, condition of the root {self.condition:.3g})"


def as_metric(metric: Tensor | Metric | None, S: Tensor) -> Metric | None:
    """Return the metric for a cloud, None for the plain one.

    Args:
        metric: a `Metric`, a second moment for one without damping, or None.
        S: shape (V, d).

    Raises:
        TypeError, ValueError: neither of these, or of another dimension or device than `S`.
    """
    if metric is None:
        return None
    checks.check_cloud(S)
    if not isinstance(metric, Metric):
        metric = Metric(metric)
    if metric.dim != S.shape[1]:
        raise ValueError(
            f"metric is of {metric.dim} dimensions, the rows of {S.shape[1]}: it is the second "
            f"moment of the hidden states that the head reads, shape (d, d)"
        )
    if metric.root.device != S.device:
        raise ValueError(f"metric is on {metric.root.device}, the rows on {S.device}; move one")
    return metric


def in_metric(S: Tensor, metric: Metric, mask: Tensor | None = None) -> tuple[Tensor, int]:
    """Return `2**-exponent (S - mean) Sigma^(1/2)`, and the exponent.

    Args:
        S: shape (V, d), floating dtype, finite.
        metric: of dimension d.
        mask: bool, shape (V,), True for the rows that take part.

    Returns:
        A new tensor, shape (V, d), float64, zero in rows left out.
    """
    rows = CentredRows(S, mask)
    made = metric.stretched(rows.of(S))
    if mask is not None:
        made[~mask] = 0.0
    return made, rows.exponent


def momentum_in_metric(rows: Tensor, metric: Metric) -> tuple[Tensor, int]:
    """Return `2**-exponent A Sigma^(-1/2)`, largest entry about one, and the exponent.

    Args:
        rows: a centred momentum at unit scale, shape (n, d).
        metric: of dimension d.

    Returns:
        Shape (n, d), dtype of `rows`, the product rounded once from float64.
    """
    made = metric.whitened(rows)
    exponent = int(torch.frexp(made.abs().max())[1]) if made.numel() else 0
    return times_power_of_two(made, -exponent).to(rows.dtype), exponent


def _eigen(sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order, those that are rounding as zero, and vectors, in float64."""
    noise = NOISE * torch.finfo(sigma.dtype).eps
    full = sigma.double()
    size = float(full.abs().max())
    if size == 0.0:
        raise ValueError("metric is zero: no hidden state has been seen; give their second moment")
    mean = float(full.diagonal().mean())
    if not 1 / LARGEST <= abs(mean) <= LARGEST:
        raise ValueError(
            f"metric has mean eigenvalue {mean:g}, expected {1 / LARGEST:g} to {LARGEST:g}; scale "
            f"the hidden states, and lr by the inverse"
        )
    uneven = float((full - full.T).abs().max())
    if uneven > noise * size:
        raise ValueError(
            f"metric is not symmetric: entries differ from their mirror images by {uneven:g}, the "
            f"largest being {size:g}; give H^T H / n, or (sigma + sigma.T) / 2 if that is meant"
        )
    values, vectors = torch.linalg.eigh((full + full.T) / 2)
    limit = noise * float(full.norm())
    if float(values[0]) < -limit:
        raise ValueError(
            f"metric is not positive semidefinite: its smallest eigenvalue is "
            f"{float(values[0]):g}, its largest {float(values[-1]):g}; a second moment H^T H / n "
            f"has none below zero"
        )
    return torch.where(values <= limit, 0.0, values), vectors
