"""Plain training loops: `python -m examples.loops`, or one of them by name.

python -m examples.loops mixed_precision --steps 30
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LinearLR

from examples.tiny import Decoder, loss_of, text
from rowsep.optim import for_language_model

BATCH = 8


def plain(steps: int) -> list[float]:
    """A loop as any other, with a schedule that reaches every parameter group."""
    model = Decoder()
    optimizer = for_language_model(model, head_lr=0.1)
    print(optimizer.table())
    schedule = LinearLR(optimizer, start_factor=1.0, end_factor=0.1, total_iters=steps)
    losses = []
    for step in range(steps):
        tokens = text(BATCH, seed=step)
        loss = loss_of(model(tokens), tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.item())
    head = optimizer.optimizers["head"].last_step["head.weight"]  # type: ignore[attr-defined]
    print(f"last step of the head: rho {head.rho:.3f}, alignment {head.alignment:.3f}")
    return losses


def accumulation(steps: int, micro_batches: int = 4) -> list[float]:
    """Gradients of several small batches for one step: divide each loss by their number."""
    model = Decoder()
    optimizer = for_language_model(model, head_lr=0.1)
    losses = []
    for step in range(steps):
        total = 0.0
        for tokens in text(BATCH, seed=step).chunk(micro_batches):
            loss = loss_of(model(tokens), tokens) / micro_batches
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
    return losses


def mixed_precision(steps: int) -> list[float]:
    """Float16 with a `GradScaler`, which starts too high: the first steps are skipped."""
    model = Decoder()
    optimizer = for_language_model(model, head_lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=1000)
    losses, skipped = [], 0
    for step in range(steps):
        tokens = text(BATCH, seed=step)
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(tokens)
        loss = loss_of(logits, tokens)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        before = scaler.get_scale()
        scaler.update()
        skipped += scaler.get_scale() < before
        optimizer.zero_grad()
        losses.append(loss.item())
    print(f"{skipped} of {steps} steps skipped for infinite gradients")
    return losses


def fit(model: Callable[[Tensor], Tensor], optimizer: Optimizer, steps: int) -> list[float]:
    """The loop itself: what a model in bfloat16 or a compiled one needs is no different."""
    losses = []
    for step in range(steps):
        tokens = text(BATCH, seed=step)
        loss = loss_of(model(tokens), tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def bfloat16(steps: int) -> list[float]:
    """Weights in bfloat16. The head's momentum is float32; a step is rounded to the weight."""
    model = Decoder().bfloat16()
    optimizer = for_language_model(model, lr=2e-3, head_lr=0.1)
    return fit(model, optimizer, steps)


def compiled(steps: int, backend: str = "inductor") -> list[float]:
    """A compiled model; before or after compiling, the optimiser finds the same parameters."""
    model = torch.compile(Decoder(), backend=backend)
    optimizer = for_language_model(model, head_lr=0.1)  # type: ignore[arg-type]
    return fit(model, optimizer, steps)


LOOPS: dict[str, Callable[..., list[float]]] = {
    loop.__name__: loop for loop in (plain, accumulation, mixed_precision, bfloat16, compiled)
}


def main(names: list[str], steps: int) -> dict[str, list[float]]:
    """Run the loops named, each from the same weights, and return their losses."""
    results = {}
    for name in names:
        torch.manual_seed(0)
        results[name] = LOOPS[name](steps)
        print(f"{name}: loss {results[name][0]:.3f} -> {results[name][-1]:.3f} in {steps} steps")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(LOOPS), help=", ".join(LOOPS))
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    main(arguments.names, arguments.steps)
