"""One run: a head trained on hidden states that do not change.

On one thread a run is a function of its configuration and its data, to the last bit, and so is one
that went on from its checkpoint; only the timings differ. Runs that share a seed see the same
batches.
"""

import math
import os
import time
from pathlib import Path
from typing import Any

import torch

from experiments.frozen_head.config import BANDS
from experiments.frozen_head.cross_entropy import loss_and_gradient, token_losses
from experiments.frozen_head.data import Data, batch_order
from experiments.frozen_head.heads import OPTIMIZERS
from experiments.frozen_head.variants import HiddenCovariance
from experiments.lm_head.config import Run
from experiments.lm_head.train import LOSS_EVERY, to_the_end


def train(run: Run, data: Data, **course: Any) -> dict[str, Any] | None:
    """Train, from the checkpoint if there is one, and evaluate.

    Args:
        run: what to train.
        data: of its training.
        course: `checkpoint`, `on_step` and `stop` of `experiments.lm_head.train.train`.

    Returns:
        What that returns. `bits_per_byte` is NaN, as positions are left out; `band_losses` are by
        `config.BANDS`, NaN for a band without targets; `seconds` are of the processor. Each of the
        `evaluations` in `history` has the `seconds` until then.
    """
    return to_the_end(Session(run, data), **course)


class Session:
    """A run in progress."""

    def __init__(self, run: Run, data: Data):
        """Put the head at its start and make its optimiser."""
        self.run, self.training, self.data = run, run.training, data
        self.identity = {"run": run.key, "data": data.digest, "torch": str(torch.__version__)}
        self.order = batch_order(len(data.train.targets), self.training, run.seed)
        self.head = torch.nn.Parameter(data.head.clone())
        self.optimizer = OPTIMIZERS[run.optimizer]([self.head], lr=run.lr, **run.options)
        self.step = 0
        self.diverged = False
        self.seconds = {"step": 0.0, "head": 0.0}
        self.recent: list[float] = []
        self.history: dict[str, list] = {"train": [], "evaluations": [], "measures": []}

    def advance(self) -> None:
        """Take one step; evaluate where it is time to."""
        training, step = self.training, self.step
        self.optimizer.param_groups[0]["lr"] = self.run.lr * training.factor(step)
        began = time.process_time()
        chosen = self.order[step * training.batch : (step + 1) * training.batch]
        hidden, targets = self.data.train.batch(chosen)
        loss, self.head.grad = loss_and_gradient(hidden, targets, self.head.detach())
        if not math.isfinite(loss):
            self.diverged = True
            return
        stepped = time.process_time()
        if isinstance(self.optimizer, HiddenCovariance):
            self.optimizer.observe(self.head, hidden)
        self.optimizer.step()
        ended = time.process_time()
        if not bool(self.head.isfinite().all()):
            self.diverged = True
            return

        self.seconds["step"] += ended - began
        self.seconds["head"] += ended - stepped
        self.recent.append(loss)
        self.step += 1
        last = self.step == training.steps
        if self.step % LOSS_EVERY == 0 or last:
            mean = sum(self.recent) / len(self.recent)
            self.history["train"].append({"step": self.step, "loss": mean})
            self.recent = []
        if self.step % training.evaluate_every == 0 and not last:
            found = self.evaluate()
            self.history["evaluations"].append(
                {
                    "step": self.step,
                    "seconds": self.seconds["step"],
                    "loss": found["val_loss"],
                    "band_losses": found["band_losses"],
                }
            )

    @torch.no_grad()
    def evaluate(self) -> dict[str, Any]:
        """Return the loss on the validation part, whole and by band."""
        part = self.data.validation
        losses = token_losses(*part.batch(torch.arange(len(part.targets))), self.head).double()
        band = self.data.bands[part.targets]
        bands = [losses[band == k].mean().item() for k in range(len(BANDS) + 1)]
        return {"val_loss": losses.mean().item(), "band_losses": bands}

    def result(self) -> dict[str, Any]:
        """Return what `train` returns, after the last step."""
        failed = {"val_loss": math.inf, "band_losses": []}
        found = failed if self.diverged else self.evaluate()
        return found | {
            "bits_per_byte": math.nan,
            "diverged": self.diverged,
            "seconds": self.seconds["step"],
            "head_share": self.seconds["head"] / max(self.seconds["step"], 1e-9),
            "history": self.history,
        }

    def save(self, path: Path) -> None:
        """Write the state so that a kill while writing leaves the one before."""
        path.parent.mkdir(parents=True, exist_ok=True)
        state = {
            "identity": self.identity,
            "head": self.head.detach(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "recent": self.recent,
            "history": self.history,
        }
        partial = path.with_name(path.name + ".partial")
        torch.save(state, partial)
        os.replace(partial, path)

    def load(self, path: Path) -> None:
        """Go on from the state in a file.

        Raises:
            ValueError: it is of another run, other data or another version of torch.
        """
        state = torch.load(path, weights_only=True)
        if state["identity"] != self.identity:
            raise ValueError(
                f"{path} belongs to another run ({state['identity']}, this one is "
                f"{self.identity}): delete it or name another file"
            )
        self.head.data.copy_(state["head"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]
        self.recent, self.history = state["recent"], state["history"]
