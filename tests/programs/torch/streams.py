#!/usr/bin/env python3
"""Uses several streams: blocks of other streams' pools, and frees that wait for a stream.

record_stream is called for a tensor that another stream uses. After its free, the block cannot be
reused until that stream's event has completed. SIMCUDA_LAG keeps such blocks waiting over several
moments; a synchronisation ends the wait, which the next allocation detects.
"""

import models
import moments
import torch
from outcome import print_outcome

MIB = 1 << 18  # floats


def pipeline(model, copies, main):
    """Runs one step: a batch is made on `copies` and used on `main`; a result is made on `main` and
    used on `copies`."""
    with torch.cuda.stream(copies):
        batch = torch.randn(256, 512).cuda(non_blocking=True)
        scratch = torch.empty(3 * MIB, device="cuda")
    main.wait_stream(copies)
    batch.record_stream(main)
    scratch.record_stream(main)
    del scratch
    moments.moment("scratch_freed")
    loss = model(batch).square().mean()
    del batch
    loss.backward()
    moments.moment("backward")
    result = torch.empty(2 * MIB, device="cuda")
    copies.wait_stream(main)
    result.record_stream(copies)
    del result
    moments.moment("result_freed")
    return loss


def main():
    moments.begin()
    torch.manual_seed(0)
    main_stream = torch.cuda.current_stream()
    copies, third = torch.cuda.Stream(), torch.cuda.Stream()
    model = models.mlp().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    moments.moment("construction")
    for _ in range(3):
        loss = pipeline(model, copies, main_stream)
        optimizer.step()
        optimizer.zero_grad()

    # A block that two other streams use is free only after both have completed.
    shared = torch.empty(5 * MIB, device="cuda")
    shared.record_stream(copies)
    shared.record_stream(third)
    del shared
    moments.moment("two_waits")
    torch.cuda.synchronize()
    moments.moment("synchronised")
    again = torch.empty(5 * MIB, device="cuda")
    moments.moment("reused")
    # Frees a block on a stream other than its own without record_stream.
    with torch.cuda.stream(third):
        del again
        with torch.cuda.stream(copies):
            torch.empty(MIB, device="cuda")
    torch.cuda.empty_cache()
    moments.moment("emptied")
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
