"""The model and the text that the examples train: small enough for a CPU, nothing downloaded."""

import torch
from torch import Tensor, nn

TOKENS = 101
"""An odd number, so that two processes hold shards of unequal size."""


class Block(nn.Module):
    """Pre-norm attention and MLP."""

    def __init__(self, width: int, heads: int) -> None:
        """Take the width and the number of attention heads."""
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.attention = Attention(width, heads)
        self.fc1 = nn.Linear(width, 4 * width, bias=False)
        self.fc2 = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Shapes (batch, time, width) to the same."""
        x = x + self.attention(self.norms[0](x))
        return x + self.fc2(self.fc1(self.norms[1](x)).relu().square())


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        """Take the width and the number of heads."""
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Shapes (batch, time, width) to the same."""
        split = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*split, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    """A language model with an untied head."""

    def __init__(self, width: int = 32, layers: int = 2, heads: int = 2) -> None:
        """Take the sizes; weights come from torch's global generator."""
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, TOKENS, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (batch, time, TOKENS) of token numbers (batch, time)."""
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def text(sequences: int, length: int = 16, seed: int = 0) -> Tensor:
    """Token numbers (sequences, length): each its predecessor times 3, or at random."""
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(TOKENS, (sequences, 1), generator=generator)
    noise = torch.rand(sequences, length, generator=generator) < 0.1
    columns = [first]
    for t in range(1, length):
        surprise = torch.randint(TOKENS, (sequences, 1), generator=generator)
        columns.append(torch.where(noise[:, t : t + 1], surprise, columns[-1] * 3 % TOKENS))
    return torch.cat(columns, dim=1)


def loss_of(logits: Tensor, tokens: Tensor) -> Tensor:
    """Mean cross-entropy of the next token, in float32."""
    return nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten()
    )
