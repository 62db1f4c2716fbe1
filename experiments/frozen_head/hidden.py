"""Hidden states of a frozen body, computed once, kept on disk, read through a memory map.

    python -m experiments.frozen_head.hidden --model smollm2-135m --text sotu

The text is cut into windows of `CONTEXT` tokens, put in one fixed random order; each window goes
through the body by itself. A part of the text, `train` or `validation`, is a file of what the head
reads, bfloat16, window by window, which only grows. So a killed command goes on where it was, a
larger number of windows adds to what is there, and any first n of them are from all over the text.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import Progress
from torch import Tensor

from experiments.frozen_head.models import (
    MODELS,
    UnavailableError,
    fetch,
    head_of,
    read_model,
    read_tokenizer,
)
from experiments.frozen_head.texts import digest_of, read_documents
from experiments.text import TextUnavailableError

CONTEXT = 256
"""Tokens of a window; the first of them have as little behind them as they say."""
BATCH = 8
"""Windows that go through the body at a time."""
ORDER_SEED = 0
PARTS = ("train", "validation")
CACHE = Path(__file__).parents[2] / ".cache" / "frozen_head"


@dataclass(frozen=True)
class States:
    """What the head reads, and what it is to predict.

    Args:
        hidden: bfloat16, shape (n, d), mapped from its file.
        targets: the token that follows, int64, shape (n,).
        digest: sixteen hexadecimal digits of the model and the windows.
    """

    hidden: Tensor
    targets: Tensor
    digest: str


def states(
    model: str,
    text: str,
    part: str,
    windows: int,
    cache: Path,
    on_windows: Callable[[int], None] | None = None,
) -> States:
    """Return the hidden states of the first windows of a text, computing those not there yet.

    Args:
        model: name in `models.MODELS`.
        text: name of a text of `texts`.
        part: "train" or "validation".
        windows: how many.
        cache: folder for packages, tokens and hidden states.
        on_windows: called with the number of windows that are there, as it grows.

    Raises:
        ValueError: no such model or text, or the text has fewer windows.
        UnavailableError, TextUnavailableError: it cannot be had.
    """
    if model not in MODELS:
        raise ValueError(f"model is {model!r}, expected one of {', '.join(MODELS)}")
    inputs, targets, digest = _windows(model, text, part, cache)
    if windows > len(inputs):
        raise ValueError(
            f"{text} has {len(inputs)} windows of {CONTEXT} tokens in its {part} part, "
            f"{windows} were asked for"
        )
    path = cache / f"{model}-{text}-{part}-{digest}.bfloat16"
    width = MODELS[model].d
    size = 2 * CONTEXT * width
    there = path.stat().st_size // size if path.exists() else 0
    if there < windows:
        body = _body(model, cache)
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.truncate(there * size)  # a window that a kill has cut short
            file.seek(there * size)
            while there < windows:
                batch = inputs[there : min(there + BATCH, windows)]
                found = body(batch).to(torch.bfloat16).contiguous()
                file.write(found.view(torch.int16).numpy().tobytes())
                file.flush()
                there += len(batch)
                if on_windows is not None:
                    on_windows(there)
    count = windows * CONTEXT
    hidden = torch.from_file(str(path), size=count * width, dtype=torch.bfloat16)
    return States(hidden.view(count, width), targets[:windows].flatten(), f"{digest}-{windows}")


def pretrained_head(model: str, cache: Path) -> Tensor:
    """Return the model's own head, shape (V, d), float32."""
    path = cache / f"{model}-head.pt"
    if not path.exists():
        partial = path.with_name(f"{path.name}.partial{os.getpid()}")
        torch.save(head_of(read_model(fetch(MODELS[model], cache))), partial)
        os.replace(partial, path)
    return torch.load(path, weights_only=True)


def window_order(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return inputs and targets of all windows in the fixed order, int64, (windows, CONTEXT)."""
    count = (len(tokens) - 1) // CONTEXT
    order = torch.randperm(count, generator=torch.Generator().manual_seed(ORDER_SEED))
    rows = tokens[order[:, None] * CONTEXT + torch.arange(CONTEXT + 1)]
    return rows[:, :-1], rows[:, 1:]


@lru_cache(maxsize=4)
def _windows(model: str, text: str, part: str, cache: Path) -> tuple[Tensor, Tensor, str]:
    """Inputs, targets and digest of all windows of a part of a text."""
    documents = read_documents(text, cache)[PARTS.index(part)]
    what = [MODELS[model].sha256, CONTEXT, ORDER_SEED, digest_of(documents)]
    digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]
    path = cache / f"{model}-{text}-{part}-{digest}-tokens.pt"
    if not path.exists():
        tokenizer = read_tokenizer(fetch(MODELS[model], cache))
        ids = [token for document in documents for token in tokenizer(document).input_ids]
        partial = path.with_name(f"{path.name}.partial{os.getpid()}")
        torch.save(torch.tensor(ids, dtype=torch.int32), partial)
        os.replace(partial, path)
    tokens = torch.load(path, weights_only=True).long()
    return *window_order(tokens), digest


def _body(model: str, cache: Path) -> Callable[[Tensor], Tensor]:
    """The body in bfloat16: token ids, shape (n, CONTEXT), to what the head reads."""
    whole = read_model(fetch(MODELS[model], cache))
    body = whole.model.to(torch.bfloat16).eval()

    def run(ids: Tensor) -> Tensor:
        with torch.no_grad():
            return body(ids, use_cache=False).last_hidden_state

    return run


def main(
    model: Annotated[str, typer.Option(help=", ".join(MODELS))] = "smollm2-135m",
    text: Annotated[str, typer.Option(help="sotu or shakespeare")] = "sotu",
    windows: Annotated[int, typer.Option(min=1, help=f"of {CONTEXT} tokens, to train on")] = 1024,
    held_out: Annotated[int, typer.Option(min=1, help="of them, for validation")] = 64,
    cache: Annotated[Path, typer.Option(help="folder for all of it")] = CACHE,
) -> None:
    """Compute the hidden states of a text, or go on with it."""
    try:
        with Progress() as bars:
            for part, count in (("validation", held_out), ("train", windows)):
                task = bars.add_task(f"{text}, {part}, windows", total=count)

                def tell(done: int, task: int = task) -> None:
                    bars.update(task, completed=done)  # type: ignore[arg-type]

                found = states(model, text, part, count, cache, tell)
                bars.update(task, completed=count)
                bars.console.print(f"{part}: {len(found.targets)} tokens, {found.digest}")
        pretrained_head(model, cache)
    except (UnavailableError, TextUnavailableError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    torch.set_num_threads(1)
    typer.run(main)
