#!/usr/bin/env python3
"""Trains an LSTM and a GRU. cuDNN keeps all weights of each in one buffer, and reserve space from
the forward to the backward pass.
"""

import moments
import torch
from outcome import print_outcome
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(1000, 96)
        self.lstm = nn.LSTM(96, 128, 2, bidirectional=True, batch_first=True, dropout=0.1)
        self.gru = nn.GRU(256, 64, batch_first=True)
        self.head = nn.Linear(64, 1000)

    def forward(self, tokens):
        x, _ = self.lstm(self.tokens(tokens))
        x, _ = self.gru(x)
        return self.head(x)


def main():
    moments.begin()
    torch.manual_seed(0)
    model = Network().cuda()
    moments.moment("construction")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(3):
        tokens = torch.randint(1000, (8, 40 + 5 * step)).cuda()
        loss = model(tokens).square().mean()
        moments.moment("forward")
        loss.backward()
        moments.moment("backward")
        optimizer.step()
        optimizer.zero_grad()
        moments.moment("step")
    moments.end()
    print_outcome(loss=loss.item())


if __name__ == "__main__":
    main()
