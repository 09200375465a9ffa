"""Trains a GPT a few steps at a time on request, and reports the time.

Usage: trainer.py [--quick] [--history python|all]
Prints one JSON line when it is ready, and one for each line of input: {"seconds": per step}.
"""

import argparse
import json
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "programs"))
from train_gpt import GPT  # noqa: E402


class Training:
    def __init__(self, quick):
        layers, hidden, heads, self.batch, self.length = (2, 256, 4, 4, 128) if quick else (12, 768, 12, 8, 512)
        self.vocabulary, self.steps = 8192, 1 if quick else 4
        torch.manual_seed(0)
        self.model = GPT(self.vocabulary, layers, hidden, heads, self.length, False).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)

    def run(self):
        """Returns the seconds per step, including all GPU work."""
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(self.steps):
            tokens = torch.randint(self.vocabulary, (self.batch, self.length + 1), device="cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = self.model(tokens[:, :-1])
                loss = F.cross_entropy(logits.reshape(-1, self.vocabulary), tokens[:, 1:].reshape(-1))
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        torch.cuda.synchronize()
        return (time.perf_counter() - started) / self.steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--history", choices=["python", "all"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    training = Training(arguments.quick)
    if arguments.history:
        torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks=arguments.history)
    for _ in range(2 if arguments.quick else 5):
        training.run()
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"seconds": training.run()}), flush=True)


if __name__ == "__main__":
    main()
