"""A head with rows of length one and a learned scale per token (as in nGPT, arXiv 2410.01131).

    z_i = s_i <w_i, h>,   ||w_i|| = 1 after every step

Preconditioning. The gradient of row i is s_i g_i h, with g the gradient of the logits, and a step
along it moves the logit by s_i <s_i g_i h, h>: by s_i^2 times what it would move that of a plain
head. Dividing the gradient of row i by s_i^2 makes the step move every logit as gradient descent on
a plain head does, up to the part along w_i that the normalisation takes back.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer


class NormalizedHead(nn.Module):
    """Logits from unit rows and a scale per token, in place of an `nn.Linear` without bias.

    Stopping the rows from growing made heads worse in public reports, which is why each token has a
    scale that can grow (nGPT). Whether it helps here has not been measured.

    Attributes:
        weight: (V, d), unit rows as long as `renormalize` is called after each step.
        scale: (V,).
    """

    def __init__(self, head: nn.Linear, *, precondition: bool = False) -> None:
        """Start from a head.

        Args:
            head: the layer to start from; s_i are its row norms, so the logits are its own.
            precondition: divide the gradient of row i by s_i^2; for optimisers whose step depends
                on the scale of a row's gradient, which AdamW's and row normalisation's does not.

        Raises:
            ValueError: the head has a bias or a zero row, which has no direction.
        """
        super().__init__()
        if head.bias is not None:
            raise ValueError("the head has a bias, expected nn.Linear(..., bias=False)")
        norms = head.weight.detach().float().norm(dim=1)
        if bool((norms == 0).any()):
            raise ValueError(
                f"{int((norms == 0).sum())} rows of the head are zero and have no direction; "
                f"initialise them"
            )
        self.weight = nn.Parameter(head.weight.detach() / norms[:, None].to(head.weight.dtype))
        self.scale = nn.Parameter(norms.to(head.weight.dtype))
        self.precondition = precondition

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits (..., V) of hidden states (..., d)."""
        weight = self.weight
        if self.precondition:
            weight = _DividedGradient.apply(weight, self.scale.detach().square())
        return F.linear(hidden, weight) * self.scale

    @torch.no_grad()
    def renormalize(self) -> None:
        """Bring the rows back to length one; the logits' scale is `scale` alone."""
        self.weight.div_(self.weight.float().norm(dim=1, keepdim=True).to(self.weight.dtype))

    def attach(self, optimizer: Optimizer) -> Any:
        """Call `renormalize` after every step of `optimizer`; returns the hook's handle."""
        return optimizer.register_step_post_hook(lambda *_: self.renormalize())


class _DividedGradient(torch.autograd.Function):
    """The identity, whose backward divides row i by `divisor[i]`."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, divisor: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(divisor)
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (divisor,) = ctx.saved_tensors
        return grad / divisor[:, None], None
