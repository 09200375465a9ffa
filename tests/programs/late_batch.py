#!/usr/bin/env python3
"""Trains small models for ten steps, and then with a batch of another size: for the largest that fits.

Usage: late_batch.py ROWS
"""

import sys

import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())

for step in range(12):
    rows = 512 if step < 10 else int(sys.argv[1])
    loss = model(torch.randn(rows, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
