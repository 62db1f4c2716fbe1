"""Hugging Face `Trainer` and Accelerate: `python -m examples.trainers`, or one of them by name."""

import argparse
import tempfile

import torch
import transformers
from accelerate import Accelerator
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader

from examples.tiny import TOKENS, Decoder, loss_of, text
from rowsep.optim import for_language_model

BATCH = 8


def trainer(steps: int) -> list[float]:
    """`Trainer(optimizers=(optimizer, scheduler))` with a model of GPT-2's shape, tied head."""
    config = transformers.GPT2Config(
        vocab_size=TOKENS,
        n_positions=16,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    optimizer = for_language_model(model, head_lr=0.1)
    print(optimizer.table())
    schedule = LambdaLR(optimizer, lambda step: 1 - 0.9 * step / steps)
    rows = [{"input_ids": row, "labels": row} for row in text(BATCH * steps)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=BATCH,
            logging_steps=1,
            max_grad_norm=0.0,  # updates have their own scale; clipping would only blur it
            save_strategy="steps",
            save_steps=steps,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        run = transformers.Trainer(
            model, arguments, train_dataset=rows, optimizers=(optimizer, schedule)
        )
        run.train()
        resumed = for_language_model(model)
        saved = f"{folder}/checkpoint-{steps}/optimizer.pt"
        resumed.load_state_dict(torch.load(saved, weights_only=True))
    return [entry["loss"] for entry in run.state.log_history if "loss" in entry]


def accelerated(steps: int) -> list[float]:
    """`accelerator.prepare` with gradient accumulation: every second backward pass is a step."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = Decoder()
    optimizer = for_language_model(model, head_lr=0.1)
    data = DataLoader(text(BATCH * steps), batch_size=BATCH)  # type: ignore[arg-type]
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    losses = []
    for tokens in data:
        with accelerator.accumulate(model):
            loss = loss_of(model(tokens), tokens)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses


TRAINERS = {"trainer": trainer, "accelerated": accelerated}


def main(names: list[str], steps: int) -> dict[str, list[float]]:
    """Run the trainers named and return their losses."""
    results = {}
    for name in names:
        torch.manual_seed(0)
        results[name] = TRAINERS[name](steps)
        print(f"{name}: loss {results[name][0]:.3f} -> {results[name][-1]:.3f} in {steps} batches")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(TRAINERS), help=", ".join(TRAINERS))
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    main(arguments.names, arguments.steps)
