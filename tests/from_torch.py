"""Copies weights of torch's own layers into the lessons' blocks, for the tests of lessons 9 and 10."""

import torch


def attention_from_torch(mine, theirs):
    W, b = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    with torch.no_grad():
        for layer, weight, bias in zip((mine.W_q, mine.W_k, mine.W_v), W, b, strict=True):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
    mine.W_o.load_state_dict(theirs.out_proj.state_dict())


def block_from_torch(mine, theirs):
    """Copy the weights of a layer of torch's encoder or decoder into our block."""
    attention_from_torch(getattr(mine, "self_attention", None) or mine.attention, theirs.self_attn)
    if hasattr(theirs, "multihead_attn"):
        attention_from_torch(mine.cross_attention, theirs.multihead_attn)
        mine.norm3.load_state_dict(theirs.norm3.state_dict())
    mine.feed_forward.up.load_state_dict(theirs.linear1.state_dict())
    mine.feed_forward.down.load_state_dict(theirs.linear2.state_dict())
    mine.norm1.load_state_dict(theirs.norm1.state_dict())
    mine.norm2.load_state_dict(theirs.norm2.state_dict())
