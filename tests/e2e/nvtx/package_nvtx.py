"""Ranges made with the package nvtx."""

import nvtx
import torch

held = torch.zeros(1024, device="cuda")


@nvtx.annotate("decorated", color="blue")
def work():
    return torch.ones(1024, device="cuda")


work()
with nvtx.annotate("with a domain", domain="my domain"):
    work_again = torch.ones(1024, device="cuda")
started = nvtx.start_range("started", color="red")
nvtx.end_range(started)
