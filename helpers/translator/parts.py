"""The table of the machine's parts: one line for every name that a learner's answer may replace, lesson by lesson.

What stands in a part's place is written in given.py and network.py, what one sees of it in views.py, by these names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Part:
    """One replaceable part.

    runs: "network" inside the network or its loss; "loss" where the decoder's input is made, "writing" where words are
    chosen one by one; "beside" in nothing but its view. view: what is shown of it, a function of views.py. opens: a
    replaced one takes attention apart, which a library call does otherwise. whole: calls others many times and takes
    no tensors that could be compared, so it is never run a second time.
    """

    name: str
    view: str
    runs: Literal["network", "loss", "writing", "beside"] = "network"
    opens: bool = False
    whole: bool = False


PARTS = (
    # Lesson 1
    Part("pull_and_push", "attention_view", "beside"),
    Part("encode", "ids_view", "beside"),
    Part("embed", "ids_view"),
    Part("one_hot", "ids_view"),
    Part("cosine_similarity", "ids_view", "beside"),
    Part("fixed_neighbors", "ids_view", "beside"),
    # Lesson 2
    Part("sinusoidal_positions", "order_view"),
    Part("add_positions", "order_view"),
    # Lesson 3
    Part("project", "scores_view"),
    Part("dot_scores", "scores_view", opens=True),
    # Lesson 4
    Part("scaled_scores", "divisor_view", opens=True),
    Part("softmax_jacobian", "divisor_view", "beside"),
    Part("weights_jacobian", "divisor_view", "beside"),
    # Lesson 5
    Part("causal_mask", "leak_view"),
    Part("padding_mask", "leak_view"),
    Part("combine_masks", "leak_view"),
    Part("mask_scores", "leak_view", opens=True),
    Part("masked_softmax", "leak_view", opens=True),
    Part("leaks_future", "leak_view", "beside", whole=True),
    # Lesson 6
    Part("softmax", "temperature_view", opens=True),
    Part("log_softmax", "temperature_view"),
    Part("cross_entropy", "temperature_view"),
    Part("softmax_with_temperature", "temperature_view", opens=True),
    # Lesson 7
    Part("weighted_values", "head_view", opens=True),
    Part("attention", "head_view"),
    Part("Head", "head_view"),
    Part("context_shift", "head_view", "beside"),
    # Lesson 8
    Part("split_heads", "heads_view"),
    Part("merge_heads", "heads_view"),
    Part("MultiHeadAttention", "heads_view"),
    Part("head_importance", "heads_view", "beside"),
    # Lesson 9
    Part("layer_norm", "attention_view"),
    Part("FeedForward", "attention_view"),
    Part("EncoderBlock", "attention_view"),
    Part("Encoder", "attention_view"),
    # Lesson 10
    Part("DecoderBlock", "attention_view"),
    Part("Transformer", "attention_view"),
    Part("shift_right", "attention_view", "loss"),
    Part("greedy_decode", "attention_view", "writing", whole=True),
    Part("attend_with_cache", "attention_view", "writing"),
    Part("filter_logits", "filter_view", "beside"),
    Part("beam_search", "beam_view", "beside", whole=True),
    # Lesson 11
    Part("make_batch", "attention_view", "beside"),
    Part("label_smoothed_loss", "attention_view", "beside"),
    Part("noam_rate", "attention_view", "beside"),
    Part("token_accuracy", "attention_view", "beside"),
    Part("alignment", "attention_view", "beside"),
)
PART = {part.name: part for part in PARTS}
