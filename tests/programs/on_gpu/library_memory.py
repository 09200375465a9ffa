"""Uses cuBLAS, cuDNN and NCCL (with a single rank) through PyTorch, so that each allocates its memory.

Usage: library_memory.py
Prints one JSON line: {library: version}.
"""

import json
import os
import socket

import torch
import torch.distributed


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def main():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), RANK="0", WORLD_SIZE="1")
    matrix = torch.randn(1024, 1024, device="cuda")
    matrix = matrix @ matrix
    images, weights = torch.randn(8, 16, 64, 64, device="cuda"), torch.randn(32, 16, 3, 3, device="cuda")
    torch.nn.functional.conv2d(images, weights, padding=1).sum().item()
    used = {"cuBLAS": torch.version.cuda, "cuDNN": torch.backends.cudnn.version()}
    if torch.distributed.is_nccl_available():
        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda:0"))
        torch.distributed.all_reduce(matrix)
        torch.cuda.synchronize()
        used["NCCL"] = ".".join(map(str, torch.cuda.nccl.version()))
        torch.distributed.destroy_process_group()
    print(json.dumps(used))


if __name__ == "__main__":
    main()
