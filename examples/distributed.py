"""Data parallel and fully sharded training in two processes over gloo, against one process.

    python -m examples.distributed

The vocabulary has 101 tokens, so that FSDP2 gives the head's rows unevenly, 51 and 50. Each process
takes half of every batch; apart from rounding the numbers are those of one process. Muon
orthogonalises in bfloat16, which shows in the hidden matrices.
"""

import argparse
import tempfile
from pathlib import Path

import torch
from torch import Tensor, distributed, multiprocessing, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from examples.tiny import Decoder, loss_of, text
from rowsep.optim import for_language_model

BATCH, PROCESSES = 8, 2
KINDS = ("one", "replicated", "sharded")


def prepared(kind: str) -> nn.Module:
    """The same weights in every process, in the wrapper of `kind`."""
    torch.manual_seed(0)
    model = Decoder()
    if kind == "replicated":
        return DistributedDataParallel(model)
    if kind == "sharded":
        mesh = init_device_mesh("cpu", (PROCESSES,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    return model


def train(kind: str, steps: int, rank: int = 0, processes: int = 1) -> dict[str, Tensor]:
    """Losses of this process's batches, and the whole weights after the last step."""
    model = prepared(kind)
    optimizer = for_language_model(model, head_lr=0.1)
    losses = []
    for step in range(steps):
        tokens = text(BATCH, seed=step).chunk(processes)[rank]
        loss = loss_of(model(tokens), tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses), **whole(model)}


def whole(model: nn.Module) -> dict[str, Tensor]:
    """Every weight, gathered where it is sharded, by its name without a wrapper's prefix."""
    return {
        name.removeprefix("module."): (p.full_tensor() if isinstance(p, DTensor) else p)
        .detach()
        .clone()
        for name, p in model.named_parameters()
    }


def process(rank: int, kinds: list[str], steps: int, folder: str) -> None:
    """One of the two processes: train, and leave the results in `folder`."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=PROCESSES
    )
    for kind in kinds:
        torch.save(train(kind, steps, rank, PROCESSES), Path(folder) / f"{kind}{rank}.pt")
    distributed.destroy_process_group()


def main(steps: int) -> dict[str, dict[str, Tensor]]:
    """Train all three ways; results by kind and rank, as in `replicated1`."""
    results = {"one": train("one", steps)}
    with tempfile.TemporaryDirectory() as folder:
        arguments = (list(KINDS[1:]), steps, folder)
        multiprocessing.spawn(process, arguments, nprocs=PROCESSES)  # type: ignore[attr-defined]
        for file in sorted(Path(folder).glob("*.pt")):
            results[file.stem] = torch.load(file, weights_only=True)
    for kind, result in results.items():
        first, last = float(result["losses"][0]), float(result["losses"][-1])
        apart = differences(result, results["one"])
        print(
            f"{kind}: loss {first:.3f} -> {last:.3f}; off one process, relative to the way moved: "
            f"head {apart['head.weight']:.1e}, largest {max(apart.values()):.1e}"
        )
    return results


def differences(result: dict[str, Tensor], reference: dict[str, Tensor]) -> dict[str, float]:
    """By weight: distance from `reference`, relative to how far that one has moved."""
    ways = {name: (reference[name] - p).norm() for name, p in whole(prepared("one")).items()}
    return {name: float((result[name] - reference[name]).norm() / ways[name]) for name in ways}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    main(parser.parse_args().steps)
