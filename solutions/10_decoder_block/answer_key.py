"""Cases and known mistakes of lesson 10: shifting, the decoder block, the Transformer, and generation."""

import functools

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, VALUES, Case, Exercise, Stub, listed_quizzes
from helpers.lessons.decoder_block.probes import step_from_table

FORBIDDEN = ("transformer",)
INSTEAD = "build it from the attention and the feed-forward network of lessons 8 and 9."


def cases_shift_right(draw):
    padded = draw.integers(4, 400, (3, 12))
    for row, length in zip(padded, (12, 7, 10), strict=True):
        row[length - 1], row[length:] = 2, 0
    padded[2, 0] = 1
    return [
        Case((draw.integers(4, 20, (3, 5)), 1)),
        Case((draw.integers(4, 20, (2, 7)), 0), part="bos of 0"),
        Case((draw.integers(4, 20, (1, 6)), 2), part="one sentence"),
        Case((draw.integers(4, 20, (4, 1)), 2), part="one word"),
        Case((padded, 1), part="sentences with padding", note="ids up to 400, eos 2, padding 0"),
        Case((), {"targets": draw.integers(4, 20, (2, 4)), "bos_id": 3}, part="arguments by name"),
    ]


shift_right = Exercise("shift_right", cases_shift_right, axes=("sentence", "position")).with_mistakes("""
    not_shifted: the targets are returned unchanged
        return torch.cat([bos, targets[:, :-1]], dim=1) -> return targets
        At position 0 the decoder has to predict the first word. What does it read there in your code?
    rolled: the targets are rolled, so the last id comes first
        torch.full_like(targets[:, :1], bos_id) -> targets[:, -1:]
        The decoder never reads the last id of the target. Which id should come first instead?
    shifted_left: the targets are shifted to the left
        [bos, targets[:, :-1]] -> [targets[:, 1:], bos]
        At position 0 nothing has been written yet. What does the decoder read there?
    one_too_long: bos was added, but no id was dropped
        targets[:, :-1]] -> targets]
        Each row must keep its length, because there is one input id per id to predict. Which id does the decoder never
        read?
    first_replaced: bos replaced the first id
        targets[:, :-1] -> targets[:, 1:]
        The first word isn't lost, because the decoder reads it before it predicts the second.
    bos_at_the_end: bos replaced the last id
        [bos, targets[:, :-1]] -> [targets[:, :-1], bos]
        You drop the right id. On which side of the others does bos belong?
    bos_twice: each row starts with bos twice
        [bos, targets[:, :-1]] -> [bos, bos, targets[:, :-2]]
        Each word has to move by one position. By how many does it move in your code?
    bos_in_one_row: only the first row starts with bos
        bos = torch.full_like(targets[:, :1], bos_id) -> bos = targets[:, -1:].clone()
        |    bos[0] = bos_id
        Each row is a separate sentence, and each starts with bos.
    along_the_sentences: the sentences are shifted, and not the words within each
        bos = torch.full_like(targets[:, :1], bos_id) -> bos = torch.full_like(targets[:1], bos_id)
        [bos, targets[:, :-1]], dim=1 -> [bos, targets[:-1]], dim=0
        Which of the two dimensions counts the words of a sentence?
    starts_with_ID for ID in 0, 1: each row starts with ID, whatever bos_id is
        torch.full_like(targets[:, :1], bos_id) -> torch.full_like(targets[:, :1], ID)
        The id of bos is an argument. Where does your code use it?
    smeared: the first id was copied to every position
        torch.cat([bos, targets[:, :-1]], dim=1) -> torch.cat([bos, targets[:, :1].expand(-1, targets.shape[1] - 1)], dim=1)
        If you write into a tensor while you read from it, the next position reads what you have just written.
""")

ATTENTION = ("W_q", "W_k", "W_v", "W_o")


def linear(draw, name, into, out, dtype):
    return {
        f"{name}.weight": draw.normal(out, into, dtype=dtype, scale=into**-0.5),
        f"{name}.bias": draw.normal(out, dtype=dtype, scale=0.5),
    }


def block_state(draw, D, F, dtype):
    state = {}
    for part in ("self_attention", "cross_attention"):
        for name in ATTENTION:
            state |= linear(draw, f"{part}.{name}", D, D, dtype)
    state |= linear(draw, "feed_forward.up", D, F, dtype) | linear(draw, "feed_forward.down", F, D, dtype)
    for i in (1, 2, 3):
        state[f"norm{i}.weight"] = 1 + draw.normal(D, dtype=dtype, scale=0.3)
        state[f"norm{i}.bias"] = draw.normal(D, dtype=dtype, scale=0.3)
    return state


def causal(T):
    return torch.ones(T, T, dtype=torch.bool).tril()


PRE_NORM = "norm before the sublayers"
ACTIVATION = "another activation"
MASKS = "masks"
ALIKE = "as many target words as source words"
NOTHING = "rows of a mask that hide everything"
AGAIN = "called twice, in training mode"


def cases_DecoderBlock(draw):
    D, H, F, B, T_t, T_s = 12, 3, 10, 2, 5, 7
    small = dict(dtype=torch.float64, D=6)

    @functools.cache
    def weights(D=D, dtype=torch.float32):
        return block_state(draw, D, F, dtype)

    def case(*masks, order=(), dtype=torch.float32, D=D, B=B, T_s=T_s, H=H, part=VALUES, note="", **named):
        gradient = named.pop("gradient", False)
        args = draw.normal(B, T_t, D, dtype=dtype), draw.normal(B, T_s, D, dtype=dtype), *masks
        module = (D, H, F, *order), weights(D, dtype), args, named
        return Case(module, via="module", part=part, note=note, gradient=gradient)

    def both(B=B, T_s=T_s):
        return causal(T_t), draw.mask(B, 1, 1, T_s)

    def in_both_orders(part, note, self_mask, memory_mask):
        """Two cases. The paper's order counts in this part, and norm_first=True in its own part."""
        named = {"self_mask": self_mask, "memory_mask": memory_mask}
        pre = case(order=(True,), part=PRE_NORM, note=f"norm_first=True, {note}", **named)
        return case(part=part, note=note, **named), pre

    def again(order, part, note):
        def pair():
            return draw.normal(B, T_t, D), draw.normal(B, T_s, D)

        args = (D, H, F, *order), weights(), (*pair(), *both()), pair()
        return Case(args, {"training": True}, via="module_called_again", part=part, note=note)

    gelu, heads, words = Stub("activation", ("gelu",)), draw.mask(H, T_t, T_t), draw.mask(T_t, T_s)
    one_word_hidden = torch.arange(T_t) != draw.integers(0, T_t, (B, 1, 1, 1))  # (B, 1, 1, T_t)
    only_padding = draw.mask(B, 1, 1, T_s)
    only_padding[1] = False
    blind = draw.mask(H, T_t, T_t)
    blind[:, 2] = False
    return [
        case(note="no masks"),
        case(*both(), note="a causal mask, and one that hides source words"),
        case(*both(T_s=T_t), T_s=T_t, part=ALIKE),
        case(*both(T_s=T_t), T_s=T_t, order=(True,), part=PRE_NORM),
        case(self_mask=causal(T_t), B=T_t, part=MASKS, note="a causal mask for as many sentences as words"),
        case(memory_mask=draw.mask(B, 1, 1, 3), T_s=3, part=MASKS, note="more target words than source words"),
        case(self_mask=draw.mask(B, H, T_t, T_t), memory_mask=draw.mask(B, H, T_t, T_s), part=MASKS),
        case(*both(), order=(False,), part=MASKS),
        *in_both_orders(MASKS, "a self_mask (H, T_t, T_t) and a memory_mask (T_t, T_s)", heads, words),
        *in_both_orders(
            MASKS, "a self_mask (B, 1, 1, T_t) and a memory_mask (H, T_t, T_s)", one_word_hidden, draw.mask(H, T_t, T_s)
        ),
        *in_both_orders(NOTHING, "a source sentence of padding alone", causal(T_t), only_padding),
        *in_both_orders(
            NOTHING, "masks that hide the whole memory, and all from one target word", blind, words & False
        ),
        case(order=(True,), part=PRE_NORM),
        case(order=(True,), T_s=3, part=PRE_NORM, note="norm_first=True, more target words than source words"),
        case(*both(B=T_t), order=(True,), B=T_t, part=PRE_NORM),
        case(*both(), **small, order=(True,), part=PRE_NORM, gradient=True),
        case(order=(False, gelu), part=ACTIVATION, note="activation: F.gelu"),
        case(order=(True, gelu), part=PRE_NORM, note="norm_first=True, activation: F.gelu"),
        case(*both(B=1), B=1, H=4, part="a batch of one"),
        again((), AGAIN, "one module called twice in training mode: with masks, and on other inputs without"),
        again((True,), PRE_NORM, "norm_first=True, one module called twice in training mode"),
        case(*both(), **small, part=DTYPE),
        case(*both(), **small, part=GRADIENT, gradient=True),
    ]


decoder_block = Exercise(
    "DecoderBlock",
    cases_DecoderBlock,
    axes=("target word", "channel"),
    forbidden=FORBIDDEN,
    instead=INSTEAD,
    weights={PRE_NORM: 3},
    apart=(PRE_NORM,),
).with_mistakes("""
    memory_normalized: with pre-norm, the memory is normalized as well
        self.norm2(y), memory -> self.norm2(y), self.norm2(memory)
        The norms apply to y only. Is there a norm around m in the pre-norm formula?
    query_and_key_exchanged: in cross-attention the queries come from the source and the keys from the target
        (self.norm2(y), memory, mask=memory_mask) -> (memory, self.norm2(y), mask=memory_mask)
        (y, memory, mask=memory_mask) -> (memory, y, mask=memory_mask)
        Which side is the query here, and which is the database? The output has one row per query.
    memory_not_handed_on: cross-attention gets the target instead of the memory
        (self.norm2(y), memory, mask=memory_mask) -> (self.norm2(y), mask=memory_mask)
        (y, memory, mask=memory_mask) -> (y, mask=memory_mask)
        Your block never uses the source. Which argument of forward does your code ignore?
    one_attention_for_both: self_attention is called twice, and cross_attention never
        self.cross_attention(self.norm2(y), memory -> self.self_attention(self.norm2(y), memory
        self.cross_attention(y, memory -> self.self_attention(y, memory
        The block has two attention layers with separate weights. Which of them attends to the source in your code?
    self_mask_ignored: self_mask is not used
        self.norm1(y), mask=self_mask -> self.norm1(y)
        (y, mask=self_mask) -> (y)
        A target word may not attend to every other one. Which of the two attention layers needs this mask?
    memory_mask_ignored: memory_mask is not used
        (self.norm2(y), memory, mask=memory_mask) -> (self.norm2(y), memory)
        (y, memory, mask=memory_mask) -> (y, memory)
        Some source positions are padding. Which of the two attention layers attends to the source?
    no_masks: neither of the two masks is used
        self.norm1(y), mask=self_mask -> self.norm1(y)
        (self.norm2(y), memory, mask=memory_mask) -> (self.norm2(y), memory)
        (y, mask=self_mask) -> (y)
        (y, memory, mask=memory_mask) -> (y, memory)
        There are two masks, one for each attention layer. In which calls do you pass them?
    masks_exchanged: the two masks are exchanged
        self.norm1(y), mask=self_mask -> self.norm1(y), mask=memory_mask
        self.norm2(y), memory, mask=memory_mask -> self.norm2(y), memory, mask=self_mask
        (y, mask=self_mask) -> (y, mask=memory_mask)
        (y, memory, mask=memory_mask) -> (y, memory, mask=self_mask)
        One mask is as wide as the target and the other as wide as the source. Which attention layer needs which mask?
    masks_as_key_and_value: every call with a mask raises an error
        self.norm1(y), mask=self_mask -> self.norm1(y), self_mask
        (y, mask=self_mask) -> (y, self_mask)
        (self.norm2(y), memory, mask=memory_mask) -> (self.norm2(y), memory, memory_mask)
        (y, memory, mask=memory_mask) -> (y, memory, memory_mask)
        MultiHeadAttention takes query, key, value and mask in this order. Which argument do your masks become?
    always_causal: the causal mask is applied even when no mask is given
        if self.norm_first: -> if self_mask is None:
        |            self_mask = causal_mask(y.shape[1])
        |        if self.norm_first:
        The caller passes the masks. Without a mask every word may attend to every other one.
    no_residuals: no residual connections
        y = y + self.self_attention -> y = self.self_attention
        y = y + found -> y = found
        return y + self.feed_forward -> return self.feed_forward
        self.norm1(y + self.self_attention -> self.norm1(self.self_attention
        self.norm2(y + found) -> self.norm2(found)
        self.norm3(y + self -> self.norm3(self
        If all three sublayers returned zeros, what would be left of y?
    no_residual_at_cross_attention: cross-attention replaces the target's vectors
        y = y + found -> y = found
        self.norm2(y + found) -> self.norm2(found)
        Each of the three sublayers adds to y. Check the second one.
    cross_before_self: cross-attention comes before self-attention
        y = y + self.self_attention(self.norm1(y), mask=self_mask)[0]  # (B, T_t, D)
        |            found, cross_weights = self.cross_attention(self.norm2(y), memory, mask=memory_mask)
        |            y = y + found  # (B, T_t, D)
        -> found, cross_weights = self.cross_attention(self.norm2(y), memory, mask=memory_mask)
        |            y = y + found
        |            y = y + self.self_attention(self.norm1(y), mask=self_mask)[0]
        y = self.norm1(y + self.self_attention(y, mask=self_mask)[0])  # (B, T_t, D)
        |        found, cross_weights = self.cross_attention(y, memory, mask=memory_mask)
        |        y = self.norm2(y + found)  # (B, T_t, D)
        -> found, cross_weights = self.cross_attention(y, memory, mask=memory_mask)
        |        y = self.norm2(y + found)
        |        y = self.norm1(y + self.self_attention(y, mask=self_mask)[0])
        Compare with the three formulas of the exercise. Which sublayer comes first?
    norm1_everywhere: norm1 is used three times
        self.norm2(y), memory -> self.norm1(y), memory
        self.norm3(y)) -> self.norm1(y))
        self.norm2(y + found) -> self.norm1(y + found)
        self.norm3(y + self -> self.norm1(y + self
        Each of the three sublayers has its own norm with its own weights.
    norm_first_ignored: always post-norm, whatever norm_first says
        if self.norm_first: -> if False:
        With norm_first=True each sublayer gets a normalized input, and the sum is not normalized.
    always_norm_first: pre-norm, although the paper's order is asked for
        if self.norm_first: -> if True:
        By default the block follows the paper, which first adds and then normalizes.
    norm_between: with post-norm, the norm is applied to the sublayer's output before the sum
        self.norm1(y + self.self_attention(y, mask=self_mask)[0]) -> y + self.norm1(self.self_attention(y, mask=self_mask)[0])
        self.norm2(y + found) -> y + self.norm2(found)
        self.norm3(y + self.feed_forward(y)) -> y + self.norm3(self.feed_forward(y))
        The paper's figure calls this step Add & Norm. Which of the two comes first?
    residuals_from_the_norms: with pre-norm, the residuals are taken after the norms
        y = y + self.self_attention(self.norm1(y), -> y = self.norm1(y); y = y + self.self_attention(y,
        found, cross_weights = self.cross_attention(self.norm2(y),
        -> y = self.norm2(y); found, cross_weights = self.cross_attention(y,
        return y + self.feed_forward(self.norm3(y)) -> y = self.norm3(y); return y + self.feed_forward(y)
        This is the bug of lesson 9. The residual has to be taken before the norm.
    activation_dropped: the activation is always ReLU
        d_ff, activation) -> d_ff) #
        The block has an argument activation. Which part should use it?
""")


def cases_fixed_loss(draw):
    def case(B, T_s, T_t, V, pad_id=0, lengths=None, dtype=torch.float32, scale=2.0, bos=1, **options):
        """Target rows consist of bos, words, eos and padding; `lengths` include bos and eos."""
        eos = 2 if pad_id == 0 else 1 - bos
        tgt = draw.integers(3, V, (B, T_t))
        tgt[:, 0] = bos
        for row, length in zip(tgt, lengths or [T_t] * B, strict=True):
            row[length - 1], row[length:] = eos, pad_id
        src = draw.integers(3, 40, (B, T_s))
        table = draw.normal(53, V, dtype=dtype, scale=scale)
        return Case((table, src, tgt, pad_id), via="with_model_from_table", **options)

    return [
        case(3, 4, 6, 11, note="three sentences without padding"),
        case(3, 4, 7, 11, lengths=[7, 3, 5], note="three sentences, two of them padded"),
        case(2, 5, 6, 9, pad_id=2, lengths=[4, 6], part="pad_id other than 0"),
        case(3, 3, 5, 7, pad_id=2, lengths=[5, 3, 4], bos=0, part="bos and eos other than 1 and 2"),
        case(1, 3, 5, 8, part="one sentence"),
        case(2, 4, 5, 9, bos=7, lengths=[5, 4], part="bos other than 1"),
        case(3, 4, 6, 11, scale=150.0, part="large logits"),
        case(2, 3, 2, 7, part="no words but bos and eos"),
        case(3, 4, 7, 11, lengths=[7, 3, 5], dtype=torch.float64, part=DTYPE),
        case(3, 4, 7, 11, lengths=[7, 3, 5], dtype=torch.float64, part=GRADIENT, gradient=True),
    ]


fixed_loss = Exercise("fixed_loss", cases_fixed_loss).with_mistakes("""
    not_shifted: the version with the bug, where the decoder reads the words that it has to predict
        tgt[:, :-1] -> tgt
        tgt[:, 1:] -> tgt
        At position 2, which word has the model just read, and which one does your loss ask it to predict?
    both_cut_at_the_end: the last column was dropped from both the input and the targets
        tgt[:, 1:] -> tgt[:, :-1]
        Write the input above the targets. Below each word there should be the word that follows it.
    both_cut_at_the_start: bos was dropped from both the input and the targets
        tgt[:, :-1] -> tgt[:, 1:]
        Write the input above the targets. What should the decoder read before the first word?
    shifted_backward: the model has to predict the previous word
        tgt[:, :-1] -> tgt[:, 1:]
        tgt[:, 1:], ignore -> tgt[:, :-1], ignore
        You have the right two slices, but in the wrong roles. Which of them has to begin with bos?
    first_logits_cut: each position has to predict the word that it has just read
        logits = model(src, tgt[:, :-1]) -> logits = model(src, tgt)[:, 1:]
        The logits of position 0 depend on bos alone. Which word do they have to predict?
    divided_by_all_positions: the sum leaves padding out, but the number of words includes it
        return cross_entropy(logits, tgt[:, 1:], ignore_index=pad_id)
        -> each = F.cross_entropy(logits.mT, tgt[:, 1:], ignore_index=pad_id, reduction="none")
        |    return each.mean()
        How many words does the model have to predict in this batch? Divide by that number.
    bos_read_twice: the full target, bos included, was shifted once more
        model(src, tgt[:, :-1]) -> model(src, shift_right(tgt, tgt[0, 0].item()))
        tgt[:, 1:] -> tgt
        The rows of tgt already begin with bos. After another shift they begin with two, and the model has to predict
        the second one.
    padding_counted: padding is included in the mean
        tgt[:, 1:], ignore_index=pad_id -> tgt[:, 1:]
        The model doesn't have to predict padding. Which argument tells you its id?
    pad_id_is_0: id 0 is always treated as padding
        ignore_index=pad_id -> ignore_index=0
        The id of padding is one of the arguments. Where does your code use it?
    mean_of_sentence_means: each sentence counts the same, however long
        return cross_entropy(logits, tgt[:, 1:], ignore_index=pad_id)
        -> return sum(cross_entropy(one, row, ignore_index=pad_id) for one, row in zip(logits, tgt[:, 1:])) / len(tgt)
        Take one mean over all words of the batch.
    viewed: the logits are reshaped with view or reshape instead of exchanging two dimensions
        cross_entropy(logits, tgt[:, 1:], ignore_index=pad_id)
        -> F.cross_entropy(logits.reshape(len(logits), logits.shape[2], -1), tgt[:, 1:], ignore_index=pad_id)
        `view` keeps the memory order and changes only the shape. Where do the logits of position 0 end up?
    probabilities_first: softmax was applied before the cross-entropy
        cross_entropy(logits, -> cross_entropy(torch.softmax(logits, dim=-1),
        Cross-entropy expects logits and applies the softmax itself, so in your code it is applied twice.
""")

PADDING = "padding has no effect"
PAD_ID = "pad_id other than 0"
CAUSAL = "causal"
METHODS = "encode and decode, called one by one"
AGAIN = "called twice, in training mode"
FULL = "as many words as max_len"
SIZES = dict(src_vocab=14, tgt_vocab=11, d_model=6, num_heads=2, d_ff=10, num_layers=2, max_len=9)


def transformer_state(draw, sizes, dtype):
    """A state dictionary for a Transformer with the lesson's parameter names."""
    D, F, L = (sizes[name] for name in ("d_model", "d_ff", "num_layers"))
    state = {}
    for prefix, vocab in (("encoder.", sizes["src_vocab"]), ("", sizes["tgt_vocab"])):
        state[f"{prefix}tokens.weight"] = draw.normal(vocab, D, dtype=dtype)
        state[f"{prefix}positions.weight"] = draw.normal(sizes["max_len"], D, dtype=dtype)
    for layer in range(L):
        block = block_state(draw, D, F, dtype)
        state |= {f"blocks.{layer}.{name}": weight for name, weight in block.items()}
        own = block_state(draw, D, F, dtype)
        own = {name: weight for name, weight in own.items() if not name.startswith(("cross_attention", "norm3"))}
        state |= {
            f"encoder.blocks.{layer}.{name.replace('self_attention', 'attention')}": weight
            for name, weight in own.items()
        }
    return state | linear(draw, "unembed", D, sizes["tgt_vocab"], dtype)


def cases_Transformer(draw):
    @functools.cache
    def weights(dtype, **sizes):
        return transformer_state(draw, sizes, dtype)

    def words(vocab, B, T, pad_id=0):
        """Random ids without pad_id. If pad_id is not 0, each row begins with the word 0."""
        ids = draw.integers(0, vocab - 1, (B, T))
        ids = ids + (ids >= pad_id)
        if pad_id:
            ids[:, 0] = 0
        return ids

    def made(dtype=torch.float32, pad_id=None, **more):
        sizes = SIZES | more
        init = tuple(sizes.values()) + (() if pad_id is None else (pad_id,))
        return sizes, init, weights(dtype, **sizes)

    def case(B, T_s, T_t, hidden=(), pad_id=None, dtype=torch.float32, more=(), **options):
        """hidden: the positions of the padding in each source sentence."""
        sizes, init, state = made(dtype, pad_id, **dict(more))
        pad = pad_id or 0
        src, tgt = words(sizes["src_vocab"], B, T_s, pad), words(sizes["tgt_vocab"], B, T_t, pad)
        for row, positions in zip(src, hidden, strict=False):
            row[list(positions)] = pad
        args = init, state, (src, tgt), {}
        return Case(args, **{"via": "module", "tolerance": tolerance(dtype)} | options)

    def one_by_one():
        sizes, init, state = made()
        src, other = (words(sizes["src_vocab"], 3, 5) for _ in range(2))
        src[0, 3:] = src[1, 4:] = 0
        return Case(
            (init, state, src, words(sizes["tgt_vocab"], 3, 4), other),
            via="encoded_and_decoded",
            part=METHODS,
            tolerance=tolerance(torch.float32),
            note="another batch encoded before the first is decoded",
        )

    def called_twice():
        sizes, init, state = made()
        lengths = (4, 3), (6, 5), (5, 4)
        calls = [(words(sizes["src_vocab"], 3, T_s), words(sizes["tgt_vocab"], 3, T_t)) for T_s, T_t in lengths]
        for src, _ in calls:
            src[0, 2:] = src[1, 3:] = 0
        src[2] = 0
        return Case(
            (init, state, *calls),
            {"training": True},
            via="module_called_again",
            part=AGAIN,
            tolerance=tolerance(torch.float32),
            note="one model called with three batches of different lengths",
        )

    float64, right = torch.float64, ((), (3, 4), (2, 3, 4))
    large = dict(src_vocab=9, tgt_vocab=17, num_layers=1, max_len=40)
    double = dict(dtype=float64, more=dict(num_layers=1).items())
    return [
        case(3, 5, 4),
        one_by_one(),
        case(3, 5, 4, right, part=PADDING, note="sentences of 5, 3 and 2 words, padded with 0"),
        case(4, 6, 3, ((0, 1), (2, 4), (), range(6)), part=PADDING, note="padding on the left, inside, nowhere, all"),
        case(2, 6, 3, ((0, 1), (2, 4)), part=PADDING, note="padding on the left and inside, none at the end"),
        case(3, 5, 4, right, pad_id=3, part=PAD_ID, note="sentences padded with 3, where 0 is a word"),
        case(3, 5, 4, right, pad_id=10, part=PAD_ID, note="sentences padded with 10, where 0 is a word"),
        case(
            3,
            5,
            4,
            right,
            pad_id=3,
            **double,
            part=PAD_ID,
            gradient=True,
            note="sentences padded with 3, where 0 is a word",
        ),
        case(4, 4, 4, more={"num_layers": 1}.items(), part=CAUSAL, note="as many sentences as words"),
        case(2, 4, 7, part=CAUSAL, note="more target words than source words"),
        called_twice(),
        case(2, 9, 9, part=FULL),
        case(1, 40, 40, more=large.items(), part=FULL, note="40 words, a larger vocabulary on the target side"),
        case(2, 5, 4, more={"num_layers": 3, "num_heads": 3}.items(), part="three layers"),
        case(1, 4, 1, part="one sentence, one target word"),
        case(3, 5, 4, right, **double, part=DTYPE),
        case(2, 5, 4, ((), (3, 4)), **double, part=GRADIENT, gradient=True),
    ]


def tolerance(dtype):
    """Allows any order of summation in float32 over several layers."""
    return 1e-4 if dtype == torch.float32 else None


transformer = Exercise(
    "Transformer",
    cases_Transformer,
    axes=("sentence", "position", "word"),
    forbidden=FORBIDDEN,
    instead=INSTEAD,
    time_limit=10.0,
).with_mistakes("""
    padding_not_masked: padding is masked neither in the encoder nor in cross-attention
        self.encoder(src, real) -> self.encoder(src)
        block(y, memory, causal, real) -> block(y, memory, causal)
        The encoder's self-attention and the decoder's cross-attention both attend to source positions. Where do you
        pass the padding mask?
    encoder_sees_padding: the encoder attends to padding
        self.encoder(src, real) -> self.encoder(src)
        The memory of a short sentence changes with the padding after it. Which call needs a mask?
    cross_attention_sees_padding: cross-attention attends to padding
        block(y, memory, causal, real) -> block(y, memory, causal)
        The memory is right, but padding still has an effect. Which other attention layer attends to source positions?
    mask_stored: decode uses the padding mask of the last batch that was encoded
        return self.encoder(src, real) -> self.real = real
        |        return self.encoder(src, real)
        block(y, memory, causal, real) -> block(y, memory, causal, self.real)
        Your model stores the mask between calls. From which argument of decode can you compute it instead?
    pad_id_is_0: id 0 is always treated as padding
        self.pad_id = pad_id -> self.pad_id = 0
        The constructor has an argument pad_id, whose value may differ from its default.
    word_0_never_learns: an embedding has padding_idx=0
        nn.Embedding(tgt_vocab, d_model) -> nn.Embedding(tgt_vocab, d_model, padding_idx=0)
        With padding_idx=0, row 0 of the table gets no gradient. Is id 0 always padding here?
    not_causal: the causal mask is missing
        block(y, memory, causal, real) -> block(y, memory, None, real)
        In training the decoder reads the full target. What keeps position t from attending to position t + 1?
    masks_exchanged: the two masks of the decoder's blocks are exchanged
        block(y, memory, causal, real) -> block(y, memory, real, causal)
        One mask is as wide as the target and the other as wide as the source. In which order does your block expect
        them?
    padding_of_the_target: the padding mask of cross-attention is made from tgt
        real = (src != self.pad_id)[:, None, None, :]  # (B, 1, 1, T_s)
        |        causal -> real = (tgt != self.pad_id)[:, None, None, :]
        |        causal
        The keys of cross-attention come from the memory. Of which sentence is it the memory?
    no_target_positions: the position vectors of the target are missing
        + self.positions(torch.arange(T, device=tgt.device)) ->
        The encoder adds the positions of the source. Where do you add those of the target?
    positions_of_the_source: the target's positions come from the encoder's table
        self.positions(torch -> self.encoder.positions(torch
        The model has two tables of position vectors. Which of them do you never use?
    words_of_the_source: the target's words come from the encoder's table
        self.tokens(tgt) -> self.encoder.tokens(tgt)
        The two languages have separate vocabularies. Which table holds the words of the target?
    words_scaled: the target's word vectors were multiplied by the square root of the width
        y = self.tokens(tgt) + -> y = self.tokens(tgt) * self.tokens.embedding_dim**0.5 +
        The paper does that, because its embeddings are initialized with smaller values. Here the vectors are added as
        they are.
    norm_behind_the_blocks: there is a norm after the last decoder block
        return self.unembed(y) -> return self.unembed(F.layer_norm(y, y.shape[-1:]))
        Each post-norm block already ends with a norm. Does the exercise ask for another one?
    memory_replaced: the attention weights that a block returns overwrite the memory
        y, _ = block( -> y, memory = block(
        A decoder block returns a pair. What does the second block get as its memory?
    shifted_inside: the target is shifted once more inside the model
        y = self.tokens(tgt) -> tgt = shift_right(tgt, 1)
        |        y = self.tokens(tgt)
        tgt already starts with bos, because the caller has shifted it.
    probabilities: decode returns probabilities instead of logits
        return self.unembed(y) -> return self.unembed(y).softmax(-1)
        The loss, the temperature and the filters of this lesson all expect the values before the softmax.
    last_place_only: logits for the last target position only
        return self.unembed(y) -> return self.unembed(y)[:, -1]
        In training, every target position has a next word to predict. How many rows of logits does that need?
    memory_made_again: decode encodes src again instead of using the memory that it gets
        T = tgt.shape[1] -> T, memory = tgt.shape[1], self.encode(src)
        Generation encodes the source once and then calls decode for every word. Which memory should decode use?
    padding_alone_seen: the padding mask is inverted
        self.encoder(src, real) -> self.encoder(src, ~real)
        block(y, memory, causal, real) -> block(y, memory, causal, ~real)
        True means may attend. Where is yours True?
    pre_norm: the decoder's blocks are pre-norm
        DecoderBlock(d_model, num_heads, d_ff) -> DecoderBlock(d_model, num_heads, d_ff, True)
        The exercise asks for the paper's order, which is the default of DecoderBlock. Which one do you build?
""")


def coarse(draw, *shape):
    """A table of integers from -4 to 4, which takes little space in the key even if it is large."""
    return draw.integers(-4, 5, shape).float()


def greedy_path(table, bos_id, eos_id, max_len):
    """Greedy decoding. It only serves to choose tables, not to judge answers."""
    step, path = step_from_table(table), [bos_id]
    while len(path) <= max_len and path[1:].count(eos_id) == 0:
        path.append(int(step(torch.tensor([path])).argmax()))
    return path


def table_with_length(draw, V, bos_id, eos_id, max_len, low, high, rows=97, scale=2.0):
    """A table whose greedy path has low to high words after bos and ends with eos."""
    for _ in range(10_000):
        table = draw.normal(rows, V, scale=scale)
        path = greedy_path(table, bos_id, eos_id, max_len)
        if path[-1] == eos_id and low <= len(path) - 1 <= high and len(set(path)) > 2:
            return table
    raise ValueError("no table with a path of that length")


def never(table, word):
    table = table.clone()
    table[:, word] = -30.0
    return table


def always(table, word):
    table = table.clone()
    table[:, word] = 30.0
    return table


def cases_greedy_decode(draw):
    def case(table, *rest, **options):
        return Case((Stub("step_from_table", (table,)), *rest), **options)

    endless = never(draw.normal(97, 8, scale=2.0), 2)
    return [
        case(table_with_length(draw, 7, 1, 2, 9, 3, 6), 1, 2, 9, note="a sentence of a few words"),
        case(
            table_with_length(draw, 12, 1, 2, 9, 3, 6, rows=31, scale=0.3),
            *(1, 2, 9),
            note="logits that are nearly equal",
        ),
        case(table_with_length(draw, 6, 0, 5, 8, 3, 6), 0, 5, 8, note="a sentence of a few words"),
        case(table_with_length(draw, 6, 4, 0, 8, 3, 6), 4, 0, 8, part="eos of 0"),
        case(table_with_length(draw, 6, 1, 2, 5, 5, 5), 1, 2, 5, part="eos as the last word allowed"),
        case(endless, 1, 2, 6, part="eos never comes"),
        case(endless, 1, 2, 110, part="eos never comes"),
        case(endless, 1, 2, 1, part="max_len = 1"),
        case(always(draw.normal(97, 5), 3), 0, 3, 7, part="eos at once"),
        case(always(coarse(draw, 5, 310), 300), 1, 300, 4, part="eos at once"),
        case(draw.normal(31, 9, dtype=torch.float64), 1, 2, 6, part="float64 logits"),
        case(never(-50 - draw.uniform(97, 6), 2) - 60, 1, 2, 4, part="logits far below zero"),
        case(never(900 + draw.normal(97, 6, scale=20.0), 2), 1, 2, 6, part="large logits"),
    ]


greedy_decode = Exercise("greedy_decode", cases_greedy_decode).with_mistakes("""
    without_bos: bos is missing at the front
        return ids -> return ids[1:]
        The list should contain everything that the decoder has read. What does it read first?
    eos_dropped: eos is missing at the end
        if ids[-1] == eos_id: -> if ids[-1] == eos_id and [ids.pop()]:
        The list includes eos, which shows that the sentence is finished.
    eos_always_added: eos is appended even when the list already ends with it
        return ids -> return [*ids, eos_id]
        If the model predicts eos, your loop has already appended it.
    eos_at_the_limit: eos is appended although the model did not predict it
        return ids -> return ids if ids[-1] == eos_id else [*ids, eos_id]
        If eos has not come when max_len is reached, the list ends with an ordinary word.
    runs_past_eos: your loop continues after eos
        if ids[-1] == eos_id: -> if False:
        The sentence ends at eos, even if max_len allows more words.
    stops_one_late: one more word is generated after eos
        ids[-1] == eos_id -> len(ids) > 2 and ids[-2] == eos_id
        The sentence ends at eos. When does your code check for it?
    one_word_only: only one word is generated
        if ids[-1] == eos_id: -> if True:
        Only eos ends a sentence early. In which iteration does the line that ends your loop run?
    one_word_short: when max_len is reached, one word is missing
        range(max_len) -> range(max_len - 1)
        max_len counts only the words after bos.
    one_word_long: when max_len is reached, there is one word too many
        range(max_len) -> range(max_len + 1)
        max_len counts the words after bos. What is the largest number of calls of step?
    last_word_only: step gets only the last word
        torch.tensor([ids]) -> torch.tensor([ids[-1:]])
        The decoder needs all words so far, not only the last one.
    bos_forgotten_by_step: step always gets bos alone
        torch.tensor([ids]) -> torch.tensor([ids[:1]])
        The decoder reads every word that it has written before it chooses the next one.
    eos_is_2: id 2 is always treated as eos
        ids[-1] == eos_id -> ids[-1] == 2
        The id of eos is one of the arguments. Where does your code use it?
    logit_for_id: the largest logit was used as an id
        logits.argmax().item() -> int(logits.max())
        A logit says how likely a word is. Which function returns the index of the largest one?
""")

COVERING = "a beam that covers everything"
PENALTY = "length_penalty"
AFTER_EOS = "nothing grows after eos"


def leaning(table, word, by):
    table = table.clone()
    table[:, word] += by
    return table


def cut_counts(draw, V, bos_id, eos_id, max_len):
    """A table without eos in which a beam of 2 differs from greedy decoding, from keeping two words after every prefix
    without a common cut, and from a beam whose prefixes must end in different words."""
    for _ in range(10_000):
        table = never(draw.normal(97, V, scale=2.0), eos_id)
        step, found = step_from_table(table), []
        for kept, apart in ((2, False), (2, True), (2**max_len, False), (1, False)):
            beam = [([bos_id], 0.0)]
            for _ in range(max_len):
                grown = []
                for ids, log_p in beam:
                    likely = step(torch.tensor([ids]))[0].log_softmax(-1).topk(2)
                    pairs = zip(likely.indices.tolist(), likely.values.tolist(), strict=True)
                    grown += [([*ids, word], log_p + more) for word, more in pairs]
                grown.sort(key=lambda item: -item[1])
                beam = [*{ids[-1]: (ids, p) for ids, p in reversed(grown)}.values()] if apart else grown
                beam = sorted(beam, key=lambda item: -item[1])[:kept]
            found.append(beam[0][0])
        if len({tuple(ids) for ids in found[:3]}) == 3 and found[3] != found[0]:
            return table
    raise ValueError("no table in which the cut counts")


def early_end_counts(draw, V, bos_id, eos_id, max_len, penalty):
    """A table whose best sentence by score neither has the largest sum, nor is the best finished one at the time when
    no unfinished sentence has a larger sum."""
    for _ in range(10_000):
        table = leaning(draw.normal(97, V, scale=0.6), eos_id, 1.0)
        step, live, done, early = step_from_table(table), [([bos_id], 0.0)], [], None
        score = lambda item: item[1] / (len(item[0]) - 1) ** penalty  # noqa: E731
        for _ in range(max_len):
            if early is None and done and max(i[1] for i in done) >= max(i[1] for i in live):
                early = max(done, key=score)
            grown = [
                ([*ids, word], log_p + more)
                for ids, log_p in live
                for word, more in enumerate(step(torch.tensor([ids]))[0].log_softmax(-1).tolist())
            ]
            done += [item for item in grown if item[0][-1] == eos_id]
            live = [item for item in grown if item[0][-1] != eos_id]
        likeliest, best = max(done, key=lambda item: item[1]), max(done, key=score)
        if early and len({tuple(item[0]) for item in (early, likeliest, best)}) == 3:
            return table
    raise ValueError("no table in which an early end counts")


def cases_beam_search(draw):
    def case(table, *rest, **options):
        return Case((Stub("step_from_table", (table,)), *rest), **options)

    def table(V, scale=2.0):
        return draw.normal(97, V, scale=scale)

    return [
        case(table_with_length(draw, 6, 1, 2, 8, 3, 6), 1, 2, 8, 1, note="a beam of 1"),
        case(never(table(6), 2), 1, 2, 5, 1, note="a beam of 1, where eos never comes"),
        case(cut_counts(draw, 5, 1, 2, 4), 1, 2, 4, 2, note="a beam of 2, where eos never comes"),
        case(table(3), 0, 2, 4, 200, part=COVERING),
        case(table(4), 1, 0, 3, 200, part=COVERING),
        case(table(4, 1.0), 3, 1, 4, 900, part=COVERING),
        case(table(3) + torch.tensor([0.0, 0.0, -60.0]), 0, 2, 3, 100, part="finished, though unlikely"),
        case(never(table(5), 2), 1, 2, 3, 1, 1.0, part=PENALTY),
        case(table(3), 0, 2, 4, 200, 1.0, part=PENALTY),
        case(table(4, 1.0), 1, 0, 4, 900, 0.6, part=PENALTY),
        case(early_end_counts(draw, 3, 0, 2, 4, 1.0), 0, 2, 4, 200, 1.0, part=PENALTY),
        case(table(3) + torch.tensor([0.0, 0.0, -4.0]), 1, 2, 4, 200, 2.0, part=PENALTY),
        case(leaning(table(3), 2, 3.0), 1, 2, 4, 200, 3.0, part=AFTER_EOS),
        case(leaning(table(4), 0, 3.0), 1, 0, 4, 900, 2.0, part=AFTER_EOS),
        case(always(table(5), 3), 0, 3, 6, 1, part="eos at once"),
        # With this penalty a second eos would win, but no other sentence, so that published versions agree.
        case(leaning(always(coarse(draw, 5, 310), 300), 300, -10.0), 1, 300, 3, 1, 3.0, part="eos at once"),
        Case(
            (Stub("step_from_table", (table(3),)),),
            {"bos_id": 0, "eos_id": 1, "max_len": 3, "beam_size": 100, "length_penalty": 0.5},
            part="arguments by name",
        ),
        # eos at once wins without a penalty, and the longest sentence wins with it
        case(leaning(table(4, 0.3), 2, 1.0), 1, 2, 4, 900, 3.0, part=PENALTY),
    ]


beam_search = Exercise("beam_search", cases_beam_search).with_mistakes("""
    logits_added: logits were added instead of log-probabilities
        torch.log_softmax(step(torch.tensor([ids]))[0], dim=-1) -> step(torch.tensor([ids]))[0]
        Logits of different prefixes can't be compared. Which function turns a row of logits into log-probabilities?
    probabilities_multiplied: probabilities were multiplied, without a logarithm
        [([bos_id], 0.0)] -> [([bos_id], 1.0)]
        torch.log_softmax -> torch.softmax
        log_p + more -> log_p * more
        The score is a log-probability, because a product of many probabilities would round to 0. What does the
        logarithm turn a product into?
    never_cut: beam_size continuations are kept for each prefix, not beam_size in total
        for i, more in enumerate(steps)] -> for i, more in sorted(enumerate(steps), key=lambda pair: -pair[1])[:beam_size]]
        reverse=True)[:beam_size] -> reverse=True)
        With a beam of 2, how many prefixes do you hold after the second step, and how many after the third?
    worst_kept: the worst prefixes are kept instead of the best
        key=score, reverse=True -> key=score
        Does your sorting put the smallest or the largest score first?
    no_penalty: length_penalty affects neither the choice of the winner nor its score
        ** length_penalty -> ** 0.0
        Every word lowers the log-probability. By what should the score be divided, so that long sentences can win?
    bos_counted: bos counts as a word
        (len(ids) - 1) -> len(ids)
        The length counts only the words after bos.
    penalty_multiplied: the log-probability is multiplied by the power of the length
        log_p / (len(ids) - 1) -> log_p * (len(ids) - 1)
        Log-probabilities are negative. Does your penalty bring a long sentence closer to 0 or farther away from it?
    chosen_without_penalty: the winner is chosen without the penalty
        max(finished or beam, key=score) -> max(finished or beam, key=lambda item: item[1])
        The finished sentences differ in length, so compare their scores after the penalty.
    score_not_normalized: the score is returned without the penalty
        score(winner) -> winner[1]
        Return the score by which the sentence was chosen.
    unfinished_compete: unfinished sentences compete with finished ones
        finished or beam -> finished + beam
        An unfinished sentence is the answer only if none has finished.
    first_finished_wins: the first finished sentence always wins
        beam = [item for -> beam = [] if finished else [item for
        A sentence that finishes later may still be more likely, or have the better score after the penalty.
    ends_too_early: the search ends when no longer sentence can be more likely, although one may score better
        grown = [] -> if not beam or (finished and max(i[1] for i in finished) >= max(i[1] for i in beam)):
        |            break
        |        grown = []
        Without a penalty you may stop there. With one, can a less likely sentence have the better score?
    eos_not_heard: sentences don't end at eos
        finished += [item for item in best if item[0][-1] == eos_id] -> pass
        beam = [item for item in best if item[0][-1] != eos_id] -> beam = best
        A prefix that ends with eos is finished and should leave the beam. What does your code do with it?
""")

BOTH = "top_k and top_p together"
TOP_P = "top_p"


def between(draw, logits, k=None):
    """A top_p far from every row's cumulative probabilities (of its k best words if k is given)."""
    ordered = logits.double().reshape(-1, logits.shape[-1]).sort(dim=-1, descending=True).values
    sums = torch.softmax(ordered[:, :k], dim=-1).cumsum(-1).flatten().tolist()
    margin = lambda p: min(abs(p - s) for s in sums)  # noqa: E731
    return max((round(draw.python.uniform(0.3, 0.9), 4) for _ in range(40)), key=margin)


def cases_filter_logits(draw):
    def rows(*shape, dtype=torch.float32, scale=1.5):
        """Logits without nearly equal entries in a row."""
        V = shape[-1]
        steps = torch.stack([draw.permutation(V) for _ in range(max(1, torch.Size(shape[:-1]).numel()))])
        return (steps.reshape(shape) * (2 * scale / V) + draw.uniform(*shape, high=scale / V)).to(dtype) - 2

    def case(logits, k=None, p=None, via=None, **options):
        named = {"top_k": k} if k is not None else {}
        if p:
            named["top_p"] = between(draw, logits, k)
        return Case((logits,), named, via=via, **options)

    def uneven():
        """Rows of different levels, in which 5, 2 and 1 words reach a probability of 0.58."""
        flat, steep = [135, 133, 131, 128, 123, 120, 117, 113], [900, 40, 25, 15, 9, 6, 3, 2]
        shares = torch.tensor([flat, [500, 300, 150, 30, 10, 5, 3, 2], steep])
        order = torch.stack([draw.permutation(8) for _ in range(3)])
        return (shares / 1000).log().gather(1, order) + torch.tensor([[-20.0], [0.0], [100.0]])

    one, two, three = rows(9), rows(9), rows(60)
    f64 = torch.float64
    peaked = rows(7)
    peaked[draw.integer(0, 7)] = 9.0
    return [
        case(one, k=4, note="top_k = 4"),
        case(two, p=True, note="top_p alone"),
        Case((three,), note="no filter"),
        Case((rows(60),), note="no filter, 60 words"),
        Case((uneven(),), {"top_p": 0.58}, part=TOP_P),
        Case(((torch.tensor([3, 900, 60, 2, 30, 5]) / 1000).log(),), {"top_p": 0.9965}, part=TOP_P),
        case(rows(8, scale=0.2), p=True, part=TOP_P),
        Case((peaked,), {"top_p": 0.5}, part="one word that has more than top_p"),
        case(rows(10), k=6, p=True, part=BOTH),
        case(rows(10), k=2, p=True, part=BOTH),
        case(rows(3, 9), k=5, p=True, part=BOTH),
        case(rows(10, scale=0.2), k=2, p=True, part=BOTH),  # two words have a small part of the row's probability
        # top_p keeps one of the two words, but would keep three of all ten.
        Case((rows(10, scale=0.2),), {"top_k": 2, "top_p": 0.3}, part=BOTH),
        case(uneven(), k=3, part=LEADING),
        case(rows(2, 3, 7), k=4, part=LEADING),
        case(rows(2, 3, 7), p=True, part=LEADING),
        case(rows(1, 6), k=2, part=LEADING),
        case(rows(1, 1, 6), p=True, part=LEADING),
        case(rows(3, 8), k=1, part="top_k = 1"),
        case(rows(8), k=8, part="top_k = V"),
        case(rows(8), k=8, p=True, part="top_k = V"),
        case(rows(9, dtype=f64), k=4, part=DTYPE),
        case(rows(9, dtype=f64), k=6, p=True, part=BOTH),
        case(rows(2, 9, dtype=f64), k=6, p=True, via="finite_entries", part=GRADIENT, gradient=True),
    ]


filter_logits = Exercise("filter_logits", cases_filter_logits, axes=("row", "word")).with_mistakes("""
    top_p_first: top_p still counts the words that top_k has removed
        if top_k is not None: -> whole = logits
        |    if top_k is not None:
        logits.sort( -> whole.sort(
        Top-k comes first, and the probabilities of the remaining words must sum to 1. Which logits go into your
        softmax?
    crossing_dropped: the word with which the sum reaches top_p is removed
        above >= top_p -> above + p >= top_p
        This word is kept as well. Compare p with the total probability of the words before it.
    first_not_freed: the most likely word is removed when its probability alone exceeds top_p
        above >= top_p -> (above + p > top_p)[..., [0, *range(p.shape[-1] - 1)]]
        You shift the decisions by one position. What should the first decision be after the shift?
    not_put_back: the decisions are in sorted order, not in the order of the words
        torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, above >= top_p) -> above >= top_p
        sort also returns the original index of each entry. Use it to assign each decision to its word.
    put_back_by_gather: the decisions are assigned to the words with the inverse permutation
        torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, above >= top_p) -> (above >= top_p).gather(-1, order)
        sort tells you where each sorted entry came from. Does your code write to these positions or read from them?
    sorted_rows_returned: the rows are returned in sorted order
        logits = logits.masked_fill(cut, -> logits = ordered.masked_fill(above >= top_p,
        The logit of word 3 has to be at index 3.
    filled_with_zero: the logits of removed words are 0
        logits < last, float("-inf") -> logits < last, 0.0
        (cut, float("-inf")) -> (cut, 0.0)
        A logit of 0 has a positive probability. Which logit has probability 0?
    last_of_the_k_dropped: one word fewer than top_k
        logits < last -> logits <= last
        The k-th largest logit is one of the k that are kept.
    top_p_or_top_k: top_p has no effect when top_k is given
        if top_p is not None: -> if top_p is not None and top_k is None:
        A call may have both. Which of your branches runs in this case?
    top_k_or_1: without top_k only the largest logit is kept
        if top_k is not None: -> if True:
        logits.topk(top_k, -> logits.topk(top_k or 1,
        If top_k is None, no word is removed by its rank. Which value does your code use instead?
    probabilities_returned: probabilities instead of logits
        return logits -> return torch.softmax(logits, dim=-1)
        Logits that are kept don't change. The softmax comes later, when a word is sampled.
    likely_words_cut: for top_p, the least likely words come first in the sum
        logits.sort(dim=-1, descending=True) -> logits.sort(dim=-1)
        Top-p keeps the most likely words. At which end of the sorted row does your sum begin?
""")

ONE_BY_ONE = "one token at a time"
SEVERAL = "several tokens at a time"
KEPT = "the cache stays as it was"


WORK = "earlier tokens are not computed again"


def cases_cached_attention(draw):
    def qkv(T, B=2, H=3, d=4, dtype=torch.float32, scale=1.0):
        return tuple(draw.normal(B, H, T, d, dtype=dtype, scale=s) for s in (scale, scale, 1.0))

    def case(pieces, B=2, H=3, dtype=torch.float32, again=False, scale=1.0, **options):
        named = {"again": True} if again else {}
        first, *rest = pieces
        note = f"{first} {'token' if first == 1 else 'tokens'}" + "".join(f", then {n}" for n in rest)
        note += ", each cache continued in a second direction as well" if again else ""
        return Case(
            (*qkv(sum(pieces), B, H, 4, dtype, scale), list(pieces)), named, via="in_pieces", note=note, **options
        )

    f64 = torch.float64
    return [
        case([4, 1, 3]),
        case([5], part="no cache yet"),
        case([1, 1, 1, 1, 1], part=ONE_BY_ONE),
        case([3, 4], part=SEVERAL),
        case([1, 5, 2], part=SEVERAL),
        case([70, 2], B=1, H=1, part=SEVERAL),
        case([4, 1, 3], again=True, part=KEPT),
        case([2, 1, 1], again=True, part=KEPT),
        Case(
            qkv(48, 1, 2, 8), via="work_of_one_more", view="work_of_a_row", part=WORK, note="48 tokens, one at a time"
        ),
        case([3, 1], B=1, H=1, part="one sentence, one head"),
        case([2, 2], dtype=f64, scale=60.0, part="large scores"),
        case([4, 1, 3], dtype=f64, part=DTYPE),
        case([4, 1, 3], dtype=f64, part=GRADIENT, gradient=True),
        case([1, 1, 2], dtype=f64, part=GRADIENT, gradient=True),
    ]


cached_attention = Exercise(
    "cached_attention", cases_cached_attention, axes=("new token", "channel"), weights={WORK: 21}
).with_mistakes("""
    new_tokens_see_one_another: new tokens attend to later ones of the same call
        attention(q, k, v, mask) -> attention(q, k, v)
        Several new tokens may come in one call. May the first of them attend to the second?
    mask_from_the_start: the mask treats the first new token as token 0
        causal_mask(q.shape[-2], k.shape[-2]).to(q.device) -> torch.ones(q.shape[-2], k.shape[-2]).tril().bool()
        If five tokens are cached, the first new one may attend to six keys. How many entries are True in row 0 of your
        mask?
    square_mask: the mask has a row for every token so far
        causal_mask(q.shape[-2], k.shape[-2]) -> causal_mask(k.shape[-2])
        The mask needs one row for each new query and one column for each key.
    mask_at_the_first_call_only: once there is a cache, new tokens attend to later ones of the same call
        attention(q, k, v, mask) -> attention(q, k, v, mask if cache is None else None)
        A single new token needs no mask. What happens if several new tokens come after cached ones?
    cache_not_read: earlier tokens are not attended to
        if cache is not None: -> if False:
        The new queries attend only to the keys of this call. Where are the earlier ones?
    cache_holds_newest_only: the cache contains only the keys and values of the last call
        if cache is not None: -> new = (k, v,)
        |    if cache is not None:
        return out, (k, v) -> return out, new
        The second call is right, but the third isn't. What do you return as the cache?
    new_keys_first: new keys and values come before the old ones
        [cache[0], k] -> [k, cache[0]]
        [cache[1], v] -> [v, cache[1]]
        Under the mask each query attends to keys up to its own position, so the keys must be in the order of the text.
    scaled_twice: the scores are divided by the width instead of its square root, or twice by the square root
        attention(q, k, v, mask) -> attention(q / q.shape[-1] ** 0.5, k, v, mask)
        The function attention already divides by the square root of the width. Do you divide once more?
    mask_turned_over: the mask is inverted
        attention(q, k, v, mask) -> attention(q, k, v, ~mask)
        True means may attend. Print the mask for two new tokens after three.
    cache_grows_in_place: the cache that was passed in has changed
        if cache is not None: -> kept = [] if cache is None else cache
        |    kept.append((k, v))
        |    if len(kept) > 1:
        torch.cat([cache[0], k], dim=-2) -> torch.cat([pair[0] for pair in kept], dim=-2)
        torch.cat([cache[1], v], dim=-2) -> torch.cat([pair[1] for pair in kept], dim=-2)
        return out, (k, v) -> return out, kept
        Beam search continues from the same cache in several ways, so a call must not change it.
    cache_overwritten: the tensors in the cache that was passed in were overwritten
        if cache is not None: -> room, start = cache or (k.new_zeros(2, *k.shape[:2], 128, k.shape[-1]), 0)
        |    old, end = room[..., :start, :].clone(), start + k.shape[-2]
        |    room[..., start:end, :] = torch.stack([k, v]).detach()
        |    if cache is not None:
        cache[0] -> old[0]
        cache[1] -> old[1]
        return out, (k, v) -> return out, (room, end)
        The caller may use the same cache again. Does a second call find it unchanged?
    all_computed_again: every row is recomputed at each step, including the earlier ones
        if cache is not None: -> new = q.shape[-2]
        |    if cache is not None:
        |        q = torch.cat([cache[2], q], dim=-2)
        return out, (k, v) -> return out[..., -new:, :], (k, v, q)
        The output is right, but you save no work. Which rows of the attention weights are new when one token comes?
""")

exercises = [
    shift_right,
    decoder_block,
    fixed_loss,
    transformer,
    greedy_decode,
    beam_search,
    filter_logits,
    cached_attention,
]

quizzes = listed_quizzes("""
    quiz_1: a
        a: In training each position can attend to the next word, which is its answer. At inference the next word isn't
           there, and the model never learned to do without it.
        b: All shapes are the same with and without a mask, so no error reveals this bug.
        c: It falls faster than it should, because the answers are in the input, one position to the right.
    quiz_2: c
        a: A query has the same width as a key.
        b: Under a causal mask none of the three changes for words that are already there.
        c: Query t produces row t of the output and is never needed again, whereas later words attend to key and value t.
""")
