"""A small GPT: pre-RMSNorm blocks, learned positions, and a head without bias, untied by default.

With token embedding E, positions P and head U in R^{V x d}, the model computes

    x = E[token] + P[position]
    x <- x + Attention(norm(x)),  x <- x + W_2 gelu(W_1 norm(x))    in each layer
    logits = U norm(x)
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """Causal attention and an MLP of width 4d, each added to the residual stream."""

    def __init__(self, *, d: int, heads: int) -> None:
        """Draw the layers' weights from the global random state.

        Args:
            d: width of the residual stream, a multiple of `heads`.
            heads: number of attention heads.
        """
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.RMSNorm(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.attention_out = nn.Linear(d, d, bias=False)
        self.mlp_norm = nn.RMSNorm(d)
        self.mlp_in = nn.Linear(d, 4 * d, bias=False)
        self.mlp_out = nn.Linear(4 * d, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, time, d) to the same shape."""
        batch, time, d = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, time, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, time, d / heads)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, time, d))
        return x + self.mlp_out(F.gelu(self.mlp_in(self.mlp_norm(x))))


class GPT(nn.Module):
    """Decoder-only transformer; its weights depend on `seed` alone.

    Weights are drawn from N(0, 0.02^2), those that write to the residual stream from
    N(0, 0.02^2 / (2 layers)); norm gains start at 1.
    """

    def __init__(
        self,
        *,
        vocab: int,
        d: int,
        layers: int,
        heads: int,
        context: int,
        seed: int,
        tied: bool = False,
    ) -> None:
        """Build the model; the global random state is left as it was.

        Args:
            vocab: number of tokens V.
            d: width of the residual stream.
            layers: number of blocks.
            heads: attention heads per block; divides d.
            context: longest sequence, in tokens.
            seed: seed of the weights.
            tied: whether the head's matrix is that of the token embedding.
        """
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # the layers' own initialisation draws too
            torch.manual_seed(seed)
            self.tokens = nn.Embedding(vocab, d)
            self.positions = nn.Embedding(context, d)
            self.blocks = nn.ModuleList(Block(d=d, heads=heads) for _ in range(layers))
            self.norm = nn.RMSNorm(d)
            self.head = nn.Linear(d, vocab, bias=False)
            for name, weight in self.named_parameters():
                if weight.ndim == 2:
                    residual = name.endswith("_out.weight")
                    nn.init.normal_(weight, std=0.02 / (2 * layers) ** 0.5 if residual else 0.02)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Map token ids (batch, time) to logits (batch, time, vocab)."""
        return self.head(self.hidden(tokens))

    def hidden(self, tokens: Tensor) -> Tensor:
        """Map token ids (batch, time) to what the head reads, shape (batch, time, d).

        With g the gains of the last norm, its rows have norm at most `sqrt(d) max |g|`.
        """
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)
