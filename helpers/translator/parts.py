"""The table of the machine's parts: every name that a learner's answer may replace, lesson by lesson.

The finished parts are in finished_parts.py and network.py, and what is shown of each in part_views.py, by its name.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One replaceable part.

    view: what is shown of it, a function of part_views.py. runs: "network" inside the network or its loss; "input"
    where its ids are made; "writing" where words are chosen one by one; "beside" in nothing but its view.
    """

    lesson: int
    name: str
    view: str
    runs: str = "network"


ROWS = (
    (1, "negative_sampling_gradients", "attention_view", "beside"),
    (1, "encode", "ids_view", "input"),
    (1, "embed one_hot", "ids_view"),
    (1, "cosine_similarity fixed_neighbors", "ids_view", "beside"),
    (2, "sinusoidal_positions add_positions", "order_view"),
    (3, "project attention_scores", "scores_view"),
    (4, "scaled_scores", "divisor_view"),
    (4, "softmax_jacobian weights_jacobian", "divisor_view", "beside"),
    (5, "causal_mask padding_mask combine_masks mask_scores masked_softmax", "leak_view"),
    (5, "leaks_future", "leak_view", "beside"),
    (6, "softmax log_softmax cross_entropy softmax_with_temperature", "temperature_view"),
    (7, "weighted_values attention AttentionHead", "head_view"),
    (7, "context_shift", "head_view", "beside"),
    (8, "split_heads merge_heads MultiHeadAttention", "heads_view"),
    (8, "head_importance", "heads_view", "beside"),
    (9, "layer_norm FeedForward EncoderBlock Encoder", "attention_view"),
    (10, "DecoderBlock Transformer", "attention_view"),
    (10, "shift_right", "attention_view", "input"),
    (10, "greedy_decode cached_attention", "attention_view", "writing"),
    (10, "filter_logits", "filter_view", "beside"),
    (10, "beam_search", "beam_view", "beside"),
    (11, "make_batch label_smoothed_loss noam_lr token_accuracy alignment", "attention_view", "beside"),
)
PARTS = tuple(Part(lesson, name, *rest) for lesson, names, *rest in ROWS for name in names.split())
PART = {part.name: part for part in PARTS}
# A replaced one of these takes attention apart; without one, F.scaled_dot_product_attention does all of it.
OPENING = {"attention_scores", "scaled_scores", "mask_scores", "masked_softmax", "softmax", "softmax_with_temperature"}
OPENING |= {"weighted_values"}
# They call others many times and take no tensors that could be compared, so they are never run a second time.
WHOLE = {"leaks_future", "greedy_decode", "beam_search"}
