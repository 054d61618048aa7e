"""Means by hand."""

import torch

from gpt.training.meter import Meter


def test_the_meter_gives_means_and_begins_anew():
    meter = Meter()
    for loss, norm in ((1.0, 2.0), (3.0, 4.0)):
        meter.add(torch.tensor(loss), torch.tensor(norm))
    assert meter.read()[:2] == (2.0, 3.0)
    meter.add(torch.tensor(5.0), torch.tensor(6.0))
    loss, norm, seconds, updates = meter.read()
    assert (loss, norm, updates) == (5.0, 6.0, 1)
    assert 0 <= seconds < 1
