"""Functions that replace unanswered exercises of lesson 7 (helpers/or_finished.py), written with library calls."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def fixed_head(x, W_q, W_k, W_v):
    queries, keys, values = (F.linear(x, W) for W in (W_q, W_k, W_v))  # (..., T, d_k) twice, (..., T, d_v)
    return F.scaled_dot_product_attention(queries, keys, values)  # (..., T, d_v)


def attention_backward(Q, K, V, grad_out):
    """Uses the backend of torch's attention whose gradients can be differentiated again."""
    with sdpa_kernel(SDPBackend.MATH):
        _, pull = torch.func.vjp(F.scaled_dot_product_attention, Q, K, V)
        return pull(grad_out)  # shaped like Q, K, V
