"""The table of the machine's parts: one line for every name that a learner's answer may replace, lesson by lesson.

The finished parts are in finished_parts.py and network.py, and what is shown of each in part_views.py, by its name.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Part:
    """One replaceable part.

    runs: "network" inside the network or its loss; "input" where its ids are made; "writing" where words are chosen one
    by one; "beside" in nothing but its view. view: what is shown of it, a function of part_views.py. opens: a
    replaced one takes attention apart, which a library call does otherwise. whole: calls others many times and takes
    no tensors that could be compared, so it is never run a second time.
    """

    lesson: int
    name: str
    view: str
    runs: Literal["network", "input", "writing", "beside"] = "network"
    opens: bool = False
    whole: bool = False


PARTS = (
    Part(1, "negative_sampling_gradients", "attention_view", "beside"),
    Part(1, "encode", "ids_view", "input"),
    Part(1, "embed", "ids_view"),
    Part(1, "one_hot", "ids_view"),
    Part(1, "cosine_similarity", "ids_view", "beside"),
    Part(1, "fixed_neighbors", "ids_view", "beside"),
    Part(2, "sinusoidal_positions", "order_view"),
    Part(2, "add_positions", "order_view"),
    Part(3, "project", "scores_view"),
    Part(3, "attention_scores", "scores_view", opens=True),
    Part(4, "scaled_scores", "divisor_view", opens=True),
    Part(4, "softmax_jacobian", "divisor_view", "beside"),
    Part(4, "weights_jacobian", "divisor_view", "beside"),
    Part(5, "causal_mask", "leak_view"),
    Part(5, "padding_mask", "leak_view"),
    Part(5, "combine_masks", "leak_view"),
    Part(5, "mask_scores", "leak_view", opens=True),
    Part(5, "masked_softmax", "leak_view", opens=True),
    Part(5, "leaks_future", "leak_view", "beside", whole=True),
    Part(6, "softmax", "temperature_view", opens=True),
    Part(6, "log_softmax", "temperature_view"),
    Part(6, "cross_entropy", "temperature_view"),
    Part(6, "softmax_with_temperature", "temperature_view", opens=True),
    Part(7, "weighted_values", "head_view", opens=True),
    Part(7, "attention", "head_view"),
    Part(7, "AttentionHead", "head_view"),
    Part(7, "context_shift", "head_view", "beside"),
    Part(8, "split_heads", "heads_view"),
    Part(8, "merge_heads", "heads_view"),
    Part(8, "MultiHeadAttention", "heads_view"),
    Part(8, "head_importance", "heads_view", "beside"),
    Part(9, "layer_norm", "attention_view"),
    Part(9, "FeedForward", "attention_view"),
    Part(9, "EncoderBlock", "attention_view"),
    Part(9, "Encoder", "attention_view"),
    Part(10, "DecoderBlock", "attention_view"),
    Part(10, "Transformer", "attention_view"),
    Part(10, "shift_right", "attention_view", "input"),
    Part(10, "greedy_decode", "attention_view", "writing", whole=True),
    Part(10, "cached_attention", "attention_view", "writing"),
    Part(10, "filter_logits", "filter_view", "beside"),
    Part(10, "beam_search", "beam_view", "beside", whole=True),
    Part(11, "make_batch", "attention_view", "beside"),
    Part(11, "label_smoothed_loss", "attention_view", "beside"),
    Part(11, "noam_lr", "attention_view", "beside"),
    Part(11, "token_accuracy", "attention_view", "beside"),
    Part(11, "alignment", "attention_view", "beside"),
)
PART = {part.name: part for part in PARTS}
