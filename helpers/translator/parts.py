"""The table of the translator's parts: every name that a learner's answer can replace, by lesson.

The finished parts are in finished_parts.py and network.py, and the views that `at_work` shows are in part_views.py.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One replaceable part.

    view: the function of part_views.py that shows it. runs: "network" inside the network or its loss, "input" where
    its ids are made, "writing" where words are generated one by one, "beside" only in its view.
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
# If one of these is replaced, attention is computed step by step; otherwise by F.scaled_dot_product_attention.
INSIDE_ATTENTION = {"attention_scores", "scaled_scores", "mask_scores", "masked_softmax", "softmax", "weighted_values"}
INSIDE_ATTENTION |= {"softmax_with_temperature"}
# These call other parts many times and get functions instead of tensors, so their results are not compared.
NOT_COMPARED = {"leaks_future", "greedy_decode", "beam_search"}
