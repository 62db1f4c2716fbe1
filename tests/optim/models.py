"""Tiny language models of many shapes, built from configurations, nothing downloaded."""

import torch
import transformers
from torch import Tensor, nn

VOCABULARY = 101

COMMON = dict(
    vocab_size=VOCABULARY,
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)

CONFIGS: dict[str, transformers.PretrainedConfig] = {
    "gpt2": transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=32,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "llama": transformers.LlamaConfig(**COMMON),
    "phi3": transformers.Phi3Config(**COMMON),
    "mixtral": transformers.MixtralConfig(num_local_experts=4, **COMMON),
    "qwen2_moe": transformers.Qwen2MoeConfig(
        moe_intermediate_size=8,
        shared_expert_intermediate_size=8,
        num_experts=4,
        num_experts_per_tok=2,
        **COMMON,
    ),
    "gpt_oss": transformers.GptOssConfig(
        head_dim=8, num_local_experts=4, num_experts_per_tok=2, **COMMON
    ),
    "opt": transformers.OPTConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        ffn_dim=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        word_embed_proj_dim=16,
        max_position_embeddings=150,
        pad_token_id=0,
    ),
}


def pretrained(name: str, seed: int = 0) -> nn.Module:
    """The model of `CONFIGS[name]` with fresh weights."""
    torch.manual_seed(seed)
    return transformers.AutoModelForCausalLM.from_config(CONFIGS[name])


class Attention(nn.Module):
    """One head of causal attention with fused queries, keys and values."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        return self.c_proj(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))


class Block(nn.Module):
    """Attention and a two-layer MLP, as in nanoGPT."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln = nn.LayerNorm(width)
        self.attn = Attention(width)
        self.mlp = nn.ModuleDict(
            {"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)}
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln(x))
        return x + self.mlp["c_proj"](self.mlp["c_fc"](x).relu())


class Plain(nn.Module):
    """A decoder of plain modules; its head may be tied, and may have rows of padding."""

    def __init__(self, *, tied: bool = False, padding: int = 0, width: int = 16) -> None:
        super().__init__()
        rows = VOCABULARY + padding
        self.wte = nn.Embedding(rows, width)
        self.wpe = nn.Embedding(32, width)
        self.block = Block(width)
        self.head = nn.Linear(width, rows, bias=False)
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        return self.head(self.block(x))


def loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    """Next-token cross-entropy of a plain model or one of `transformers`."""
    output = model(tokens)
    logits = output if isinstance(output, Tensor) else output.logits
    return nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), tokens[:, 1:].flatten()
    )


def batch(seed: int = 0) -> Tensor:
    """Four sequences of 16 tokens of the vocabulary."""
    return torch.randint(VOCABULARY, (4, 16), generator=torch.Generator().manual_seed(seed))
