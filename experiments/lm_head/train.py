"""One run: a small GPT whose head has an optimiser of its own, measured on the way.

On one thread of a CPU a run is a function of its configuration and of the text, to the last bit,
and so is one that was killed and went on from its checkpoint; only the timings differ. Runs that
share a seed start from the same weights and see the same batches.
"""

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from experiments.lm_head import diagnostics
from experiments.lm_head.config import Run, Training
from experiments.lm_head.corpus import Corpus, window_order, windows_at
from experiments.lm_head.heads import OPTIMIZERS, direction
from experiments.lm_head.variants import HiddenMetric
from experiments.model import GPT
from rowsep.optim import RowSeparation, RowwiseAdam

PROBE_WINDOWS = 2
CHECKPOINT_SECONDS = 60.0
LOSS_EVERY = 10


def train(
    run: Run,
    corpus: Corpus,
    *,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    on_step: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> dict[str, Any] | None:
    """Train, from the checkpoint if there is one, and evaluate.

    Args:
        run: what to train.
        corpus: its text.
        checkpoint: file for the state of the run; None keeps none.
        checkpoint_seconds: time after which the state is written again.
        on_step: called after each step with the number of steps done.
        stop: asked after each step; if it says True, the state is written and the run left.

    Returns:
        `val_loss` (nats a token; infinite if loss or head became NaN or infinite: `diverged`),
        `bits_per_byte`, `band_losses` by `diagnostics.BANDS`, `seconds` of the steps (of the
        processor, or of the clock on an accelerator), `head_share` of them in the head's optimiser,
        and `history`. None if stopped.

    Raises:
        ValueError: too little text, an option that an optimiser refuses, or a checkpoint of
            another run.
        BoundViolatedError: a step exceeded its bound on the log-odds.
    """
    return to_the_end(
        Session(run, corpus),
        checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds,
        on_step=on_step,
        stop=stop,
    )


def to_the_end(
    session: Any,
    *,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    on_step: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> dict[str, Any] | None:
    """Advance a session, from the checkpoint if there is one, to its last step.

    Args:
        session: `Session`, or that of another experiment with the same methods.
        checkpoint: as in `train`, like the rest.
        checkpoint_seconds: likewise.
        on_step: likewise.
        stop: likewise.

    Returns:
        What the session results in, None if stopped.
    """
    if checkpoint is not None and checkpoint.exists():
        session.load(checkpoint)
    saved = time.monotonic()
    while session.step < session.training.steps and not session.diverged:
        session.advance()
        if on_step is not None:
            on_step(session.step)
        stopping = stop is not None and stop()
        if checkpoint is not None and (stopping or time.monotonic() - saved > checkpoint_seconds):
            session.save(checkpoint)
            saved = time.monotonic()
        if stopping:
            return None
    return session.result()


class Session:
    """A run in progress."""

    def __init__(self, run: Run, corpus: Corpus):
        """Build the model and its optimisers; the global random state is left as it was."""
        training = run.training
        self.run, self.training = run, training
        self.identity = {"run": run.key, "text": corpus.digest, "torch": str(torch.__version__)}
        self.train_tokens, self.token_bytes = corpus.train, corpus.token_bytes
        self.windows = window_order(len(corpus.train), training, run.seed)
        self.validation = validation_windows(corpus.validation, training)
        self.bands = diagnostics.frequency_bands(corpus.counts).to(training.device)
        self.model = GPT(
            vocab=training.vocab,
            d=training.d,
            layers=training.layers,
            heads=training.heads,
            context=training.context,
            seed=run.seed,
            tied=training.tied,
        ).to(training.device)
        self.head = self.model.head.weight
        self.optimizers = body_optimizers(self.model, training)
        self.head_optimizer = OPTIMIZERS[run.optimizer]([self.head], lr=run.lr, **run.options)
        if isinstance(self.head_optimizer, HiddenMetric):
            self.head_optimizer.watch(self.model.head)
        self.base_lrs = [
            [group["lr"] for group in optimizer.param_groups] for optimizer in self._all()
        ]
        self.step = 0
        self.diverged = False
        self.seconds = {"step": 0.0, "head": 0.0}
        self.recent: list[float] = []
        self.history: dict[str, list] = {"train": [], "evaluations": [], "measures": []}

    def advance(self) -> None:
        """Take one step; measure the head and evaluate where it is time to."""
        training, step = self.training, self.step
        self._schedule()
        last = step == training.steps - 1
        measured = training.measure_every > 0 and (step % training.measure_every == 0 or last)
        before = self._before() if measured else None

        began = self._now()
        windows = self.windows[step * training.batch : (step + 1) * training.batch]
        loss = self._loss(*windows_at(self.train_tokens, windows, training.context)).mean()
        self.model.zero_grad()
        loss.backward()
        if not math.isfinite(loss.item()):
            self.diverged = True
            return
        for optimizer in self.optimizers:
            optimizer.step()
        stepped = self._now()
        self.head_optimizer.step()
        ended = self._now()
        if not bool(self.head.isfinite().all()):
            self.diverged = True
            return

        self.seconds["step"] += ended - began
        self.seconds["head"] += ended - stepped
        self.recent.append(loss.item())
        self.step += 1
        if self.step % LOSS_EVERY == 0 or last:
            mean = sum(self.recent) / len(self.recent)
            self.history["train"].append({"step": self.step, "loss": mean})
            self.recent = []
        if before is not None:
            self.history["measures"].append(self._measure(*before))
        if self.step % training.evaluate_every == 0 and not last:
            found = self.evaluate(training.evaluate_tokens)
            self.history["evaluations"].append(
                {
                    "step": self.step,
                    "loss": found["val_loss"],
                    "band_losses": found["band_losses"],
                }
            )

    @torch.no_grad()
    def evaluate(self, num_tokens: int) -> dict[str, Any]:
        """Return the loss on the first `num_tokens` of the validation text, in windows."""
        training = self.training
        inputs, targets = self.validation
        count = max(1, num_tokens // training.context)
        sums = torch.zeros(len(diagnostics.BANDS), dtype=torch.float64)
        counts = torch.zeros(len(diagnostics.BANDS), dtype=torch.int64)
        for x, y in zip(
            inputs[:count].split(training.batch), targets[:count].split(training.batch), strict=True
        ):
            losses = self._loss(x, y)
            found = diagnostics.band_losses(losses, y.flatten().to(losses.device), self.bands)
            sums += torch.tensor(found[0], dtype=torch.float64)
            counts += torch.tensor(found[1])
        total = sums.sum().item()
        num_bytes = int(self.token_bytes[targets[:count]].sum())
        return {
            "val_loss": total / int(counts.sum()),
            "bits_per_byte": total / math.log(2) / num_bytes,
            "band_losses": (sums / counts.clamp_min(1)).tolist(),
        }

    def result(self) -> dict[str, Any]:
        """Return what `train` returns, after the last step."""
        failed = {"val_loss": math.inf, "bits_per_byte": math.inf, "band_losses": []}
        found = failed if self.diverged else self.evaluate(self.training.validation_tokens)
        return found | {
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
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self._all()],
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
            ValueError: it is of another run, another text or another version of torch.
        """
        state = torch.load(path, weights_only=True, map_location=self.training.device)
        if state["identity"] != self.identity:
            raise ValueError(
                f"{path} belongs to another run ({state['identity']}, this one is "
                f"{self.identity}): delete it or name another file"
            )
        self.model.load_state_dict(state["model"])
        for optimizer, kept in zip(self._all(), state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)
        self.step, self.seconds = state["step"], state["seconds"]
        self.recent, self.history = state["recent"], state["history"]

    def _all(self) -> list[torch.optim.Optimizer]:
        return [*self.optimizers, self.head_optimizer]

    def _schedule(self) -> None:
        factor = self.training.factor(self.step)
        for optimizer, lrs in zip(self._all(), self.base_lrs, strict=True):
            for group, lr in zip(optimizer.param_groups, lrs, strict=True):
                group["lr"] = lr * factor
        done = self.step / max(1, self.training.steps - 1)
        for option, (first, last) in self.run.schedule.items():
            self.head_optimizer.param_groups[0][option] = first + done * (last - first)

    def _loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of every position, shape (windows * context,)."""
        logits = self._logits(self._hidden(inputs))
        return diagnostics.token_losses(logits, targets.flatten().to(logits.device))

    def _hidden(self, inputs: Tensor) -> Tensor:
        with self._autocast():
            return self.model.hidden(inputs.to(self.training.device)).flatten(0, 1)

    def _logits(self, hidden: Tensor) -> Tensor:
        with self._autocast():
            return self.model.head(hidden)

    def _autocast(self) -> torch.autocast:
        enabled = self.training.precision == "bfloat16"
        return torch.autocast(self.training.device, torch.bfloat16, enabled=enabled)

    def _now(self) -> float:
        """Seconds that this process computed; of the clock on an accelerator."""
        if self.training.device == "cpu":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    @torch.no_grad()
    def _before(self) -> tuple[Tensor, Tensor, float]:
        """The head, hidden states of the probe, and the radius that bounds their norms."""
        hidden = self._hidden(self.validation[0][:PROBE_WINDOWS]).float()
        radius = math.sqrt(self.training.d) * self.model.norm.weight.abs().max().item()
        return self.head.double(), hidden, radius

    @torch.no_grad()
    def _measure(self, head: Tensor, hidden: Tensor, radius: float) -> dict[str, Any]:
        """Figures of the step just taken, and of the head before it."""
        change = self.head.double() - head
        followed = direction(self.head_optimizer, self.head)
        figures = diagnostics.update_figures(change, followed)
        lr, promised = float(self.head_optimizer.param_groups[0]["lr"]), figures["diameter"]
        if isinstance(self.head_optimizer, RowSeparation | RowwiseAdam):
            (report,) = self.head_optimizer.last_step.values()
            promised = lr * report.diameter
        logits = hidden @ head.float().T
        targets = self.validation[1][:PROBE_WINDOWS].flatten().to(logits.device)
        norms = diagnostics.row_norm_figures(head)
        return {
            "step": self.step,
            "lr": lr,
            **figures,
            **diagnostics.log_odds_figures(
                change, hidden, promised=promised, radius=radius, largest_row=norms[-1]
            ),
            **diagnostics.logit_figures(logits),
            **diagnostics.backward_figures(logits, targets, head),
            "row_norms": norms,
            "head": diagnostics.spectrum_figures(head),
            "momentum": diagnostics.spectrum_figures(followed),
        }


def validation_windows(tokens: Tensor, training: Training) -> tuple[Tensor, Tensor]:
    """Return inputs and targets of the validation windows, each of shape (windows, context).

    Raises:
        ValueError: there are fewer tokens than `validation_tokens`.
    """
    count = training.validation_tokens // training.context
    if len(tokens) <= count * training.context:
        raise ValueError(
            f"{len(tokens)} tokens are held out, too few for the {training.validation_tokens} "
            "of validation_tokens: give more text or lower it"
        )
    return windows_at(tokens, torch.arange(count), training.context)


def body_optimizers(model: GPT, training: Training) -> list[torch.optim.Optimizer]:
    """Return torch's Muon on the matrices of the blocks and AdamW on the rest but the head."""
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    taken = {id(p) for p in [*matrices, model.head.weight]}
    others = [p for p in model.parameters() if id(p) not in taken]
    return [
        torch.optim.Muon(matrices, lr=training.hidden_lr, weight_decay=0.0),
        torch.optim.AdamW(others, lr=training.embed_lr, betas=(0.9, 0.95), weight_decay=0.0),
    ]
