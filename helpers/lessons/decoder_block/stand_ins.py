"""Functions that replace unanswered exercises of lesson 10 (helpers/or_finished.py), written with library calls."""

import torch.nn.functional as F


def fixed_loss(model, src, tgt, pad_id):
    """The classes are moved to dimension 1, where F.cross_entropy expects them."""
    length = tgt.size(1) - 1
    logits = model(src, tgt.narrow(1, 0, length))  # (B, T_t - 1, V)
    return F.cross_entropy(logits.movedim(-1, 1), tgt.narrow(1, 1, length), ignore_index=pad_id)  # ()
