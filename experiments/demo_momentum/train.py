"""Train a language model and keep the moving average of its head's gradient.

With g_t the gradient of the mean cross-entropy (nats per token) with respect to the head at step t,

    m_t = decay * m_{t-1} + (1 - decay) * g_t,   m_0 = 0,

without bias correction, which would divide all entries by the same 1 - decay^t. No window of the
text is used twice, so every loss is one on text not seen before. The result is a function of tokens
and config, on one thread to the last bit, and a run goes on from its checkpoint as if it had never
stopped.
"""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.model import GPT
from rowsep.packing.io import replacing


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that a run depends on, apart from the tokens.

    Args:
        vocab: number of tokens V.
        d: width of the model.
        layers: number of blocks.
        heads: attention heads per block.
        context: tokens of a window.
        batch: windows of a step.
        steps: number of steps.
        lr: AdamW's learning rate, reached linearly over the first `warmup` steps, then constant.
        warmup: steps of the linear rise.
        weight_decay: on the blocks' matrices; none on embeddings, head and norm gains.
        decay: of the moving average of the head's gradient, in [0, 1).
        seed: of the weights and of the order of the windows.
    """

    vocab: int = 4096
    d: int = 128
    layers: int = 4
    heads: int = 4
    context: int = 128
    batch: int = 32
    steps: int = 300
    lr: float = 2e-3
    warmup: int = 30
    weight_decay: float = 0.1
    decay: float = 0.95
    seed: int = 0


@dataclass(frozen=True)
class Trained:
    """The end of a run.

    Args:
        momentum: moving average of the head's gradient, float32, shape (vocab, d).
        losses: mean cross-entropy of every step's batch, nats per token.
    """

    momentum: Tensor
    losses: list[float]


def train(
    tokens: Tensor,
    *,
    config: TrainConfig,
    checkpoint: Path | None = None,
    checkpoint_every: int = 25,
    on_step: Callable[[int, float], None] | None = None,
) -> Trained:
    """Run `config.steps` steps of AdamW on `tokens`, from the checkpoint if there is one.

    Args:
        tokens: int64 ids in [0, vocab), shape (n,), with n > steps * batch * context.
        config: model, batches and optimiser.
        checkpoint: file that holds the run's state; written every `checkpoint_every` steps and
            at the end. None keeps no state.
        checkpoint_every: steps between two writes.
        on_step: called after each step with the number of steps done and the step's loss.

    Returns:
        The momentum and all losses, the same whether or not the run was interrupted.

    Raises:
        ValueError: too few tokens, or the checkpoint belongs to another run.
    """
    windows = _window_order(tokens, config)
    model = GPT(
        vocab=config.vocab,
        d=config.d,
        layers=config.layers,
        heads=config.heads,
        context=config.context,
        seed=config.seed,
    )
    optimizer = _adamw(model, config)
    momentum = torch.zeros_like(model.head.weight)
    losses: list[float] = []
    identity = _identity(tokens, config)

    if checkpoint is not None and checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        if state["identity"] != identity:
            raise ValueError(
                f"{checkpoint} belongs to another run ({state['identity']}, this one is "
                f"{identity}): delete it or name another file"
            )
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        momentum.copy_(state["momentum"])
        losses = state["losses"]

    for step in range(len(losses), config.steps):
        for group in optimizer.param_groups:
            group["lr"] = config.lr * min(1.0, (step + 1) / config.warmup)
        starts = windows[step * config.batch : (step + 1) * config.batch] * config.context
        batch = tokens[starts[:, None] + torch.arange(config.context + 1)]
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        gradient = model.head.weight.grad
        assert gradient is not None
        momentum.lerp_(gradient, 1 - config.decay)
        optimizer.step()
        losses.append(loss.item())

        done = step + 1
        if checkpoint is not None and (done % checkpoint_every == 0 or done == config.steps):
            state = {
                "identity": identity,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "momentum": momentum,
                "losses": losses,
            }
            _save(state, checkpoint)
        if on_step is not None:
            on_step(done, losses[-1])
    return Trained(momentum, losses)


def _window_order(tokens: Tensor, config: TrainConfig) -> Tensor:
    """Return the indices of all windows of `context` tokens and one to predict, in random order."""
    available = (len(tokens) - 1) // config.context
    needed = config.steps * config.batch
    if available < needed:
        raise ValueError(
            f"{len(tokens)} tokens make {available} windows of {config.context}, "
            f"{needed} are needed: give more text, or fewer steps"
        )
    generator = torch.Generator().manual_seed(config.seed)
    return torch.randperm(available, generator=generator)


def _adamw(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    matrices = [p for name, p in model.named_parameters() if "blocks" in name and p.ndim == 2]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.lr, betas=(0.9, 0.95))


def _identity(tokens: Tensor, config: TrainConfig) -> dict[str, object]:
    digest = hashlib.sha256(tokens.numpy().tobytes()).hexdigest()
    return {**asdict(config), "tokens_sha256": digest, "torch": str(torch.__version__)}


def _save(state: dict[str, object], path: Path) -> None:
    """Write so that a run killed while writing leaves the checkpoint before this one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        torch.save(state, file)
