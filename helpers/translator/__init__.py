"""The course's translator: a small trained Transformer, of which learners can replace every part.

    model()                the trained network
    model(scaled_scores=f) the same network with f in place of that part; names as in FINISHED_PARTS
    translate(network, "jane visits africa in september")
    english, french          vocabularies: word -> id (PAD 0; French also BOS 1, EOS 2)
    FINISHED_PARTS           the translator's own function or module for every replaceable name
    state()                  the trained weights by name, float32, to load into other modules

Sizes: D_MODEL 64, NUM_HEADS 4, D_FF 128, NUM_LAYERS 2 encoder and 2 decoder blocks, MAX_LEN 24, post-norm, ReLU.
Positions are lesson 2's sinusoids. Word vectors are not multiplied by the square root of the width.

Names in the state dict, which are those of `Transformer(src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers,
max_len, pad_id=0)` (i is 0 or 1; a layer has weight and bias):

    encoder.tokens.weight                       (166, 64)   an Encoder, lesson 9
    encoder.positions.weight                    (24, 64)
    encoder.blocks.i.attention.W_q W_k W_v W_o  a MultiHeadAttention, lesson 8; the biases of W_q, W_k, W_v are 0
    encoder.blocks.i.feed_forward.up down       a FeedForward
    encoder.blocks.i.norm1 norm2
    tokens.weight                               (194, 64)
    positions.weight                            (24, 64)
    blocks.i.self_attention.W_q W_k W_v W_o     a DecoderBlock, lesson 10
    blocks.i.cross_attention.W_q W_k W_v W_o
    blocks.i.feed_forward.up down
    blocks.i.norm1 norm2 norm3
    unembed                                     (194, 64), (194,)

`part_state("encoder.blocks.0.attention")` returns the weights of one part under the part's own names.
"""

from helpers.translator.network import FINISHED_PARTS, Parts
from helpers.translator.trained import (
    D_FF,
    D_MODEL,
    MAX_LEN,
    NUM_HEADS,
    NUM_LAYERS,
    SIZES,
    greedy,
    model,
    part_state,
    source_batch,
    state,
    translate,
)
from helpers.translator.word_ids import BOS, EOS, PAD, english, french
