"""DTensor parameters: every rank takes the step that one process with the whole matrix takes."""

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from tests.optim.optimisers import CLASSES, stepped

RANKS = 2
SHAPES = ((7, 4), (1, 4), (6, 3))
"""Uneven shards, a rank with none, and even ones."""


def data(shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for _ in range(3)]


def worker(rank, store, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    for cls, options in CLASSES.values():
        for shape in SHAPES:
            for dim in (0, 1):
                whole, *grads = data(shape, seed)
                expected, plain = stepped(cls, whole, grads, weight_decay=0.1, **options)
                sharded = distribute_tensor(whole, mesh, [Shard(dim)])
                pieces = [distribute_tensor(g, mesh, [Shard(dim)]) for g in grads]
                p, optimiser = stepped(cls, sharded, pieces, weight_decay=0.1, **options)
                buffer = optimiser.state[p]["momentum_buffer"]
                assert isinstance(p.data, DTensor) and isinstance(buffer, DTensor)
                assert buffer.placements == p.placements
                torch.testing.assert_close(p.full_tensor(), expected.data, rtol=0, atol=1e-6)
                torch.testing.assert_close(
                    buffer.full_tensor(), plain.state[expected]["momentum_buffer"]
                )
                before = p.full_tensor().clone()
                optimiser.load_state_dict(optimiser.state_dict())
                assert isinstance(optimiser.state[p]["momentum_buffer"], DTensor)
                torch.testing.assert_close(p.full_tensor(), before, rtol=0, atol=0)
    dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_sharded_steps_are_those_of_one_process(tmp_path, generator, forked):
    seed = int(torch.randint(2**31, (), generator=generator))
    mp.spawn(worker, args=(tmp_path / "store", seed), nprocs=RANKS)
