"""Cases and known mistakes of lesson 11: batches, the smoothed loss, the learning rate, accuracy, the translator."""

import math
from collections import Counter

import torch
import torch.nn.functional as F

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, Case, Exercise, listed_quizzes
from helpers.corpus import sentence_pairs
from helpers.lessons.translation.probes import scripted

ELSEWHERE, TRANSPOSED = "tensors in another order in memory", "inputs that are views, as a transposed tensor is"

# ---------------------------------------------------------------- make_batch

LENGTHS = "sentences of different lengths"


def cases_make_batch(draw):
    def row(length):
        return draw.integers(5, 400, (length,)).tolist()

    def case(sizes, pad_id=0, bos_id=1, eos_id=2, again=False, **options):
        pairs = [(row(source), row(target)) for source, target in sizes]
        pairs += [tuple(map(list, pairs[0]))] * again
        return Case((pairs, pad_id, bos_id, eos_id), view="batch_without_padding", **options)

    by_name = case([(2, 3), (4, 2)])
    names = ("pairs", "pad_id", "bos_id", "eos_id")
    return [
        case([(3, 4), (3, 4)]),
        case([(4, 2), (2, 6), (5, 3)], part=LENGTHS),
        case([(6, 3), (1, 1), (3, 5), (2, 4)], again=True, part=LENGTHS, note="five pairs, the first comes once more"),
        case([(3, 5), (5, 2)], pad_id=3, bos_id=0, eos_id=1, part="other special tokens"),
        case([(2, 4), (4, 3)], pad_id=2, bos_id=3, eos_id=4, part="other special tokens"),
        case([(4, 6)], part="one sentence"),
        case([(3, 4), (70, 75)], part="a long sentence"),
        case([(3, 0), (2, 2)], part="a target without words"),
        Case((), dict(zip(names, by_name.args, strict=True)), view=by_name.view, part="arguments by name"),
    ]


make_batch = Exercise(
    "make_batch", cases_make_batch, axes=("sentence", "position"), weights={LENGTHS: 3}
).with_mistakes("""
    not_shifted: the decoder reads the words that it has to predict
        [bos_id, *tgt] for -> [*tgt, eos_id] for
        Compare tgt_in and tgt_out position by position. At which position should the first word be predicted?
    padded_with_zero: rows are padded with 0, whatever pad_id is
        [*row, *[pad_id] * -> [*row, *[0] *
        The short rows must be filled with the id of padding.
    padded_with_eos: rows are padded with eos
        [*row, *[pad_id] * -> [*row, *[eos_id] *
        The short rows must be filled with the id of padding.
    padded_on_the_left: padding comes before the words
        [*row, *[pad_id] * (longest - len(row))] -> [*[pad_id] * (longest - len(row)), *row]
        At which position is the first word of a short sentence in your tensor? Its position matters.
    transposed: rows and columns are exchanged, so each sentence fills a column
        for row in rows])  # (B, T) -> for row in rows]).T  # (T, B)
        Print the shape of one of your tensors for five short pairs. Which dimension counts the sentences? If a function of
        torch has padded for you, ask its documentation.
    eos_behind_the_padding: eos is at the end of the row, after the padding
        "tgt_out": padded([[*tgt, eos_id] for _, tgt in pairs])
        -> "tgt_out": torch.cat([padded([tgt for _, tgt in pairs]), torch.full((len(pairs), 1), eos_id)], dim=1)
        A sentence ends after its last word. Which comes first, eos or padding?
    eos_in_the_source: the source ends with eos
        padded([src for -> padded([[*src, eos_id] for
        Which of the three tensors contain special tokens? Count the columns of src.
    bos_in_the_source: the source begins with bos
        padded([src for -> padded([[bos_id, *src] for
        Which of the three tensors contain special tokens? Count the columns of src.
    begins_with_the_first_word: tgt_in does not begin with bos
        [bos_id, *tgt] for -> tgt for
        What does the decoder read when it has to predict the first word?
    bos_at_the_end: bos comes after the words
        [bos_id, *tgt] for -> [*tgt, bos_id] for
        What does the decoder read when it has to predict the first word?
    eos_is_read: tgt_in holds eos as well
        [bos_id, *tgt] for -> [bos_id, *tgt, eos_id] for
        After eos nothing has to be predicted. tgt_in and tgt_out have the same width.
    bos_is_said: tgt_out begins with bos
        [*tgt, eos_id] for -> [bos_id, *tgt, eos_id] for
        bos is never predicted, it is read at position 0. tgt_in and tgt_out have the same width.
    marks_exchanged: bos and eos are exchanged
        [bos_id, *tgt] for -> [eos_id, *tgt] for
        [*tgt, eos_id] for -> [*tgt, bos_id] for
        Which special token begins a sentence, and which one ends it?
    equal_pairs_in_one_row: a pair that comes twice fills one row only
        * (longest - len(row))] for row in rows]
        -> * (longest - len(row))] if rows.index(row) == i else [pad_id] * longest for i, row in enumerate(rows)]
        `index` returns the first pair that is equal. How can you keep track of the row instead?
    eos_not_said: tgt_out does not end with eos
        [*tgt, eos_id] for -> tgt for
        How would the decoder learn to stop? tgt_in and tgt_out are equally wide.
    in_and_out_exchanged: tgt_in and tgt_out are exchanged
        "tgt_in": padded([[bos_id, *tgt] -> "tgt_in": padded([[*tgt, eos_id]
        "tgt_out": padded([[*tgt, eos_id] -> "tgt_out": padded([[bos_id, *tgt]
        Which of the two is the input, and which is predicted? The input starts with bos.
    marks_in_the_source: the source has bos and eos
        padded([src for -> padded([[bos_id, *src, eos_id] for
        Which of the three tensors contain special tokens? Count the columns of src.
    no_eos: the targets contain no eos
        [bos_id, *tgt] for -> [bos_id, *tgt[:-1]] for
        [*tgt, eos_id] for -> tgt for
        How would the decoder learn to stop?
    both_marks_in_both: both targets hold bos and eos
        [bos_id, *tgt] for -> [bos_id, *tgt, eos_id] for
        [*tgt, eos_id] for -> [bos_id, *tgt, eos_id] for
        bos is never predicted, and after eos nothing is read. Each row has one special token.
    cut_to_the_shortest: long sentences were cut to the length of the shortest
        longest = max(len(row) for row in rows) -> longest = min(len(row) for row in rows)
        [*row, *[pad_id] * (longest - len(row))] -> row[:longest]
        No word may get lost. Who sets the width, the shortest row or the longest?
    sorted_by_length: the sentences were sorted by length
        def padded(rows): -> pairs = sorted(pairs, key=lambda pair: len(pair[0]))
        |    def padded(rows):
        Keep the order of the pairs, because the caller may need it.
    longest_first: the sentences were sorted by length
        def padded(rows): -> pairs = sorted(pairs, key=lambda pair: len(pair[0]), reverse=True)
        |    def padded(rows):
        Keep the order of the pairs, because the caller may need it.
    source_and_target_exchanged: source and target are exchanged
        [src for src, _ in pairs] -> [tgt for _, tgt in pairs]
        [bos_id, *tgt] for _, tgt -> [bos_id, *tgt] for tgt, _
        [*tgt, eos_id] for _, tgt -> [*tgt, eos_id] for tgt, _
        A pair is source first, target second.
    one_width_for_all: source and target were padded to one common width
        longest = max(len(row) for row in rows) -> longest = max(max(len(s), len(t) + 1) for s, t in pairs)
        Source and target are tensors of their own, each as wide as its own longest row.
    cut_before_eos: the targets contain no eos
        padded([[bos_id, *tgt] for _, tgt in pairs]) -> padded([[bos_id, *tgt] for _, tgt in pairs])[:, :-1]
        padded([[*tgt, eos_id] for _, tgt in pairs]) -> padded([[bos_id, *tgt] for _, tgt in pairs])[:, 1:]
        How would the decoder learn to stop?
""")

# ---------------------------------------------------------------- token_accuracy

PADDING = "padding left out"


def scores(draw, *shape, dtype=torch.float32, gap=0.05):
    """Logits (..., V) whose largest entry of each row leads by at least `gap`."""
    logits = draw.normal(*shape, dtype=dtype)
    best = logits.argmax(dim=-1, keepdim=True)
    return logits.scatter_add(-1, best, torch.full_like(logits, gap))


def lined_up(draw, B, T, V, pad_id=0, lengths=None, share=0.6):
    """Targets (B, T) with padding behind `lengths`, and logits that name about `share` of them first."""
    targets = draw.integers(0, V, (B, T))
    targets = torch.where(targets == pad_id, (targets + 1) % V, targets)
    for row, length in zip(targets, lengths or [T] * B, strict=True):
        row[length:] = pad_id
    logits = scores(draw, B, T, V)
    right = draw.uniform(B, T) < share
    lift = torch.where(right, 6.0, 0.0)[..., None]
    return logits.scatter_add(-1, targets[..., None], lift), targets


def cases_token_accuracy(draw):
    def case(B, T, V, pad_id=0, lengths=None, dtype=torch.float32, offset=0.0, **options):
        logits, targets = lined_up(draw, B, T, V, pad_id, lengths)
        if lengths:  # some padded places name padding first, some do not; a real place may name it too
            padded = targets == pad_id
            lift = torch.where(padded & (draw.uniform(B, T) < 0.5), 12.0, 0.0)
            logits[..., pad_id] += lift
            logits[0, 0, targets[0, 0]] += 10.0  # right, were it not for the padding
            logits[0, 0, pad_id] += 40.0
        return Case((logits.to(dtype) + offset, targets, pad_id), **options)

    flat, targets = lined_up(draw, 1, 8, 6, lengths=[6])
    zero_is_a_word = torch.tensor([[0, 2, 1, 3, 3]])  # and 3 is padding
    says = 4 * F.one_hot(torch.tensor([[0, 2, 2, 1, 1]]), 4) + draw.uniform(1, 5, 4)
    return [
        case(3, 5, 7),
        case(3, 6, 8, lengths=[6, 2, 4], part=PADDING),
        case(4, 7, 9, lengths=[3, 7, 1, 5], part=PADDING),
        case(2, 5, 6, pad_id=4, lengths=[5, 3], part="pad_id other than 0"),
        Case((says, zero_is_a_word, 3), part="pad_id other than 0"),
        case(1, 6, 5, lengths=[4], part="one sentence"),
        Case((flat[0], targets[0], 0), part="no batch"),
        Case((says, torch.tensor([[3, 2, 3, 0, 1]]), 3), part=PADDING, note="padding in front and in the middle"),
        case(3, 6, 8, lengths=[6, 2, 4], dtype=torch.float64, offset=1e9, part="large logits, in float64"),
        case(3, 6, 8, lengths=[6, 2, 4], part=ELSEWHERE, via="on_views", note=TRANSPOSED),
    ]


token_accuracy = Exercise("token_accuracy", cases_token_accuracy, weights={PADDING: 5}).with_mistakes("""
    padding_counted: the published version: padding counts as if it were words
        right[mask].float() -> right.float()
        Padded positions do not count. How many positions of the batch remain?
    padding_on_the_right: padding is assumed to be on the right
        mask = targets != pad_id -> mask = torch.arange(targets.shape[-1]) < (targets != pad_id).sum(-1, keepdim=True)
        Padding is where the target is pad_id. Does this say on which side it is?
    padding_is_right: padding counts as if it had been predicted correctly
        right[mask].float().mean() -> (right | ~mask).float().mean()
        Padded positions do not count. How many positions of the batch remain?
    padding_on_either_side: positions are also left out where the model predicts padding
        mask = targets != pad_id -> mask = (targets != pad_id) & (logits.argmax(dim=-1) != pad_id)
        If the model predicts padding for a real word, this is an error. Does your code count it?
    divided_by_sentences: the right words were divided by the number of sentences
        return right[mask].float().mean().item() -> return (right & mask).sum().item() / len(targets)
        The accuracy is a fraction from 0 to 1. By what do you divide?
    eos_left_out: eos was left out as well
        mask = targets != pad_id -> mask = (targets != pad_id) & (targets != 2)
        eos has to be predicted too, because a model that never predicts it never stops.
    divided_by_all_places: only real words are counted, but divided by all positions
        right[mask].float().mean().item() -> (right & mask).float().mean().item()
        Numerator and denominator have to cover the same positions.
    padding_among_the_right: right words were counted everywhere, and divided by the number of words
        return right[mask].float().mean().item() -> return (right.sum() / mask.sum()).item()
        Numerator and denominator have to cover the same positions.
    stopped_at_padding: a row ends at its first padding
        targets != pad_id -> (targets != pad_id).long().cumprod(dim=-1).bool()
        Padding is where the target is pad_id. Does this say on which side it is?
    only_padding: the padding was kept and the words left out
        targets != pad_id -> targets == pad_id
        Which positions have a target other than padding?
    padding_is_zero: padding is always the id 0
        targets != pad_id -> targets != 0
        Somebody's padding has another id. Where does it go in your code?
    padding_never_guessed: padding was excluded from the predictions
        logits.argmax(dim=-1) -> logits.index_fill(-1, torch.tensor([pad_id]), -torch.inf).argmax(dim=-1)
        If the model predicts padding for a real word, this is an error. Count it as one.
    share_of_wrong: the fraction of wrong words
        .argmax(dim=-1) == targets -> .argmax(dim=-1) != targets
        A perfect model should get 1.
    least_likely: the least likely word was compared
        argmax -> argmin
        Which end of the logits is the model's answer?
    kept_by_the_guess: positions are left out where the model predicts padding
        mask = targets != pad_id -> mask = logits.argmax(dim=-1) != pad_id
        Does the prediction or the target decide whether a position is padding?
    mean_of_sentence_means: each sentence counts the same, however long
        return right[mask].float().mean().item()
        -> return ((right & mask).float().sum(-1) / mask.sum(-1)).mean().item()
        A long sentence has more words than a short one, so count words, not sentences.
    whole_sentences: whole sentences were counted
        return right[mask].float().mean().item() -> return (right | ~mask).all(dim=-1).float().mean().item()
        A sentence with one wrong word still has right words in it.
    in_percent: the fraction was multiplied by 100
        .mean().item() -> .mean().item() * 100
        The accuracy is a fraction from 0 to 1.
    count_returned: the number of correct words, not their fraction
        .float().mean().item() -> .float().sum().item()
        Out of how many?
    tensor_returned: a tensor instead of a Python float
        .mean().item() -> .mean()
        For a curve or a print a plain number is wanted.
    probability_of_the_truth: the mean probability of the true words
        right = logits.argmax(dim=-1) == targets
        -> right = torch.softmax(logits, dim=-1).gather(-1, targets[..., None])[..., 0]
        Accuracy asks only which word is the most likely, not how likely it is.
    above_the_pad_id: only ids above pad_id are taken for words
        targets != pad_id -> targets > pad_id
        Padding may have any id. On which side of it are the ids of words?
    shifted_again: logits and targets were shifted against each other
        logits.argmax(dim=-1) == targets
        -> (logits[..., :-1, :].argmax(dim=-1) == targets[..., 1:]) if targets.shape[-1] > 1 else targets < 0
        mask = targets != pad_id -> mask = targets[..., 1:] != pad_id
        tgt_out is shifted already. Which position of the logits belongs to which target?
""")

# ---------------------------------------------------------------- noam_lr


def cases_noam_lr(draw):
    def case(step, d_model, warmup, **options):
        return Case((step, d_model, warmup), tolerance=small(step, d_model, warmup), **options)

    def small(step, d_model, warmup):
        """A millionth of the learning rate: rates are small, so they are compared by their ratio alone."""
        return 1e-6 * min(step**-0.5, step * warmup**-1.5) / d_model**0.5

    warmup = draw.integer(300, 500)
    return [
        case(draw.integer(60, 120), 64, warmup),
        case(draw.integer(900, 2000), 64, warmup),
        case(1, 512, 4000, part="step 1"),
        case(1, 36, draw.integer(5, 9), part="step 1"),
        case(warmup, 48, warmup, part="the last step of the warm-up"),
        case(draw.integer(5, 9), 512, 4000, part="another width"),
        case(draw.integer(90_000, 100_000), 512, 4000, part="another width"),
        case(draw.integer(3, 9), 64, 1, part="no warm-up"),
        Case((), {"step": 7, "d_model": 30, "warmup": 20}, tolerance=small(7, 30, 20), part="arguments by name"),
    ]


noam_lr = Exercise("noam_lr", cases_noam_lr).with_mistakes("""
    larger_of_the_two: the larger of the two was taken
        min( -> max(
        At step 1 the learning rate should be small. Which argument of the minimum is small there?
    no_warm_up: the learning rate falls from the first step
        min(step**-0.5, step * warmup**-1.5) -> step**-0.5
        One of the two arms grows with the step. Yours never uses it.
    never_falls: the learning rate keeps growing after the warm-up
        min(step**-0.5, step * warmup**-1.5) -> step * warmup**-1.5
        One of the two arms falls with the step. Yours never uses it.
    flat_after_warm_up: the learning rate stays constant after the warm-up
        min(step**-0.5, -> min(warmup**-0.5,
        The learning rate of the paper falls with the inverse square root of the step.
    height_forgotten: the shape is right, and how high the peak is does not depend on the warm-up
        min(step**-0.5, step * warmup**-1.5) -> min(step / warmup, (warmup / step) ** 0.5)
        At the peak the step is the warm-up's last. What does the paper's formula give there?
    counted_from_zero: the step was counted one too far
        return -> step = step + 1
        |    return
        The first step is step 1, and it comes in as 1.
    counted_one_too_few: the step was counted one too few
        return -> step = step - 1 or 1e-9
        |    return
        The first step is step 1. You need not make a 0 of it.
    arms_do_not_meet_POWER for POWER in 0.5, 1: the two arms do not meet where the warm-up ends
        warmup**-1.5 -> warmup**-POWER
        At step = warmup both arms must give the same. Which power of warmup does that?
    minus_a_half_undone: a power was taken first and halved afterwards
        d_model**-0.5 -> d_model**-1 / 2
        min(step**-0.5, step * warmup**-1.5) -> min(step**-1 / 2, step * warmup**-3 / 2)
        Python takes powers before it divides: 4**-1/2 is 0.125.
    step_power_cut: the power of the step was taken first and halved afterwards
        min(step**-0.5, -> min(step**-1 / 2,
        Python takes powers before it divides: 4**-1/2 is 0.125.
    warm_up_power_cut: the power of the warm-up was taken first and halved afterwards
        warmup**-1.5 -> warmup**-3 / 2
        Python takes powers before it divides: 4**-1/2 is 0.125.
    grows_after_the_warm_up: the arm that should fall grows
        step**-0.5 -> step**0.5
        Is the learning rate at step 400 larger or smaller than at step 100? Check the sign of the exponent.
    falls_in_proportion: after the warm-up the learning rate falls with 1 / step
        step**-0.5 -> warmup**0.5 / step
        Four times the step should give half of the learning rate.
    width_not_used: the width plays no part
        d_model**-0.5 *  ->
        Wider models should get a smaller learning rate.
    grows_with_the_width: wider models get a larger learning rate
        d_model**-0.5 -> d_model**0.5
        In which direction does the width act?
    divided_by_the_width: the width acts without its square root
        d_model**-0.5 -> d_model**-1.0
        It is the square root again, as in lesson 4.
    width_power_cut: the power of the width was taken first and halved afterwards
        d_model**-0.5 -> d_model**-1 / 2
        Python takes powers before it divides: 4**-1/2 is 0.125.
    step_and_warm_up_power_cut: the powers of step and warm-up were taken first and divided afterwards
        min(step**-0.5, step * warmup**-1.5) -> min(step**-1 / 2, step * warmup**-3 / 2)
        Python takes powers before it divides: 4**-1/2 is 0.125.
    width_in_one_arm: the width is inside the minimum, in its first argument only
        d_model**-0.5 * min(step**-0.5, step * warmup**-1.5) -> min(d_model**-0.5 * step**-0.5, step * warmup**-1.5)
        A factor outside the brackets multiplies both arguments of the minimum.
    warm_up_outside: the power of the warm-up is outside the minimum
        min(step**-0.5, step * warmup**-1.5) -> min(step**-0.5, step) * warmup**-1.5
        Long after the warm-up, the learning rate depends only on width and step. Does yours?
    power_turned_over: the power of the warm-up is −2/3, not −3/2
        warmup**-1.5 -> warmup ** (-2 / 3)
        At step = warmup both arms must give the same. Which power of warmup does that?
    over_the_step: after the warm-up the learning rate is divided by the step, not by its square root
        d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
        -> d_model**-0.5 * (step * warmup**-1.5 if step < warmup else 1 / step)
        Four times the step should give half of the learning rate, and at step = warmup both arguments must be equal.
""")

# ---------------------------------------------------------------- label_smoothed_loss

NO_SMOOTHING = "smoothing of 0"


def cases_label_smoothed_loss(draw):
    def case(*lead, V=7, smoothing=0.1, pad_id=0, lengths=None, dtype=torch.float32, scale=2.0, top=None, **options):
        middle = options.pop("middle", False)
        logits = draw.normal(*lead, V, dtype=dtype, scale=scale)
        if top is not None:  # the largest logit of each row
            logits = logits - logits.amax(dim=-1, keepdim=True) + top
        targets = draw.integers(0, V, lead)
        targets = torch.where(targets == pad_id, (targets + 1) % V, targets)
        for row, length in zip(targets.reshape(-1, lead[-1]), lengths or [], strict=False):
            row[length:] = pad_id
        if middle:
            targets[0, 0] = targets[-1, 2] = pad_id
        return Case((logits, targets, smoothing, pad_id), **options)

    f64 = torch.float64
    return [
        case(3, 5),
        case(3, 6, V=9, lengths=[6, 2, 4], part=PADDING),
        case(4, 5, V=8, smoothing=0.3, lengths=[1, 5, 3, 2], part=PADDING),
        case(3, 6, V=9, middle=True, part=PADDING, note="padding in front and in the middle"),
        case(2, 5, V=6, pad_id=4, lengths=[5, 3], part="pad_id other than 0"),
        case(3, 4, V=8, smoothing=0.0, scale=150.0, part=NO_SMOOTHING, note="some words are certain: their loss is 0"),
        case(3, 4, V=8, smoothing=0.0, lengths=[4, 2, 3], part=NO_SMOOTHING),
        case(2, 4, V=8, smoothing=1.0, part="smoothing of 1"),
        case(6, V=5, part="no batch"),
        case(2, 1, 4, V=5, part=LEADING),
        case(1, 1, V=5, part="one word"),
        case(
            2, 4, V=6, scale=800.0, top=0.0, dtype=f64, part="large logits", note="logits far apart, the largest is 0"
        ),
        case(2, 4, V=6, top=800.0, dtype=f64, part="large logits", note="logits around 800"),
        case(3, 6, V=9, lengths=[6, 2, 4], part=ELSEWHERE, via="on_views", note=TRANSPOSED),
        case(3, 6, V=9, lengths=[6, 2, 4], dtype=f64, part=DTYPE),
        case(3, 6, V=9, lengths=[6, 2, 4], dtype=f64, part=GRADIENT, gradient=True),
        case(3, 5, V=7, smoothing=0.3, dtype=f64, part=GRADIENT, gradient=True),
    ]


label_smoothed_loss = Exercise(
    "label_smoothed_loss",
    cases_label_smoothed_loss,
    forbidden=("cross_entropy_alone",),
    instead="build it from log-probabilities.",
    weights={PADDING: 3},
).with_mistakes("""
    padding_counted: padding counts in the mean
        losses[targets != pad_id].mean() -> losses.mean()
        Padded positions have no target. Over which positions does your mean run?
    divided_by_all_places: the sum over words is divided by the number of all positions
        losses[targets != pad_id].mean() -> losses.masked_fill(targets == pad_id, 0.0).mean()
        Numerator and denominator have to cover the same positions.
    mean_of_sentence_means: each sentence counts the same, however long
        losses[targets != pad_id].mean()
        -> (losses * (targets != pad_id)).sum(-1).div((targets != pad_id).sum(-1)).mean()
        The mean runs over all words of the batch at once.
    summed: the sum over the words, not their mean
        losses[targets != pad_id].mean() -> losses[targets != pad_id].sum()
        The number should not grow with the number of words.
    not_smoothed: smoothing plays no part
        losses = -(1 - smoothing) * true - smoothing * even -> losses = -true
        This is the plain cross-entropy. Which probability do the other words have in the target?
    shares_exchanged: the correct word got the small probability
        -(1 - smoothing) * true - smoothing * even -> -smoothing * true - (1 - smoothing) * even
        With smoothing 0 the plain cross-entropy has to come out.
    spread_over_the_others: the smoothing is spread over the other words only
        log_p.mean(dim=-1) -> (log_p.sum(dim=-1) - true) / (log_p.shape[-1] - 1)
        All V words share ε equally, including the correct one. Which total probability does the correct word have?
    true_word_overwritten: the correct word has 1 − ε and no part of ε
        losses = -(1 - smoothing) * true - smoothing * even
        -> losses = -(1 - smoothing) * true - smoothing * even + smoothing * true / log_p.shape[-1]
        What do the V probabilities of your target sum to? The correct word also gets ε / V.
    spread_over_v_minus_2: the smoothing is spread over V − 2 words
        log_p.mean(dim=-1) -> (log_p.sum(dim=-1) - true - log_p[..., pad_id]) / (log_p.shape[-1] - 2)
        Some published code leaves out the correct word and padding. Here ε is divided among all V words.
    spread_over_v_minus_1: the smoothing was divided by V − 1
        log_p.mean(dim=-1) -> log_p.sum(dim=-1) / (log_p.shape[-1] - 1)
        ε is divided among V words. What do the V probabilities of your target sum to?
    smoothing_with_a_plus: the two parts have different signs
        - smoothing * even -> + smoothing * even
        Both parts are negative log-probabilities. Does each of them get its minus?
    others_left_out: the other words have probability 0 in the target
        -(1 - smoothing) * true - smoothing * even -> -(1 - smoothing) * true
        What do the V probabilities of your target sum to?
    stopped_at_padding: a row ends at its first padding
        targets != pad_id -> (targets != pad_id).long().cumprod(dim=-1).bool()
        Padding is where the target is pad_id. Does this say on which side it is?
    exact_zeros_left_out: words of which the model is quite sure are left out of the mean
        losses[targets != pad_id].mean() -> losses[(targets != pad_id) & (losses != 0)].mean()
        A loss of 0 is the loss of a word that is right for certain, and it counts. How else can you tell padding?
    padding_in_the_sum: the sum over all positions is divided by the number of words
        losses[targets != pad_id].mean() -> losses.sum() / (targets != pad_id).sum()
        Numerator and denominator have to cover the same positions.
    padding_without_a_share: the padding id has probability 0 in the target
        log_p.mean(dim=-1) -> (log_p.sum(dim=-1) - log_p[..., pad_id]) / log_p.shape[-1]
        What do the V probabilities of your target sum to? ε is divided among all V words, padding included.
    half_over_padding: one of the two parts still runs over the padding
        losses[targets != pad_id].mean()
        -> (-(1 - smoothing) * true)[targets != pad_id].mean() - smoothing * even.mean()
        Your sum has two terms. Over which positions does the mean of each run?
    padding_is_zero: padding is always the id 0
        targets != pad_id -> targets != 0
        Somebody's padding has another id. Where does it go in your code?
    without_the_minus: the sign is the wrong way round
        -(1 - smoothing) * true - smoothing * even -> (1 - smoothing) * true + smoothing * even
        A log-probability is never above 0. What about a loss?
    no_softmax: the logits were taken for log-probabilities
        torch.log_softmax(logits, dim=-1) -> logits
        Logits can be anything. What makes log-probabilities of them?
    log_of_softmax: the logarithm of a softmax that is 0
        torch.log_softmax(logits, dim=-1) -> torch.softmax(logits, dim=-1).log()
        With large logits a probability can round to 0, and its logarithm is minus infinity. Lesson 6 has a safer way.
    exp_overflows: the logarithm of a sum of exponentials that is infinite
        torch.log_softmax(logits, dim=-1) -> logits - logits.exp().sum(dim=-1, keepdim=True).log()
        exp of a large logit overflows. Which function of lesson 6 avoids this?
    added_EPS for EPS in 1e-8, 1e-9, 1e-10, 1e-12: a small number keeps the probability from 0
        torch.log_softmax(logits, dim=-1) -> (torch.softmax(logits, dim=-1) + EPS).log()
        For very unlikely words your constant dominates. Which function of lesson 6 avoids this?
    spread_without_padding: ε is divided among all words except padding
        log_p.mean(dim=-1) -> (log_p.sum(dim=-1) - log_p[..., pad_id]) / (log_p.shape[-1] - 1)
        ε is divided among all V words, padding included.
    each_word_the_whole: every word gets ε instead of ε / V
        log_p.mean(dim=-1) -> log_p.sum(dim=-1)
        The target is a distribution. What do its V probabilities sum to?
    total_above_one: the correct word keeps probability 1
        -(1 - smoothing) * true -> -true
        The target is a distribution. What do its V probabilities sum to?
    divergence: the cross-entropy less the entropy of the target
        even  # (...)
        -> even - sum(-q * math.log(q) * k for q, k in ((1 - smoothing + smoothing / log_p.shape[-1], 1), (smoothing / log_p.shape[-1], log_p.shape[-1] - 1)) if q > 0)  # (...)
        Yours is smaller by the same number everywhere: the entropy of the smoothed target. Gradients would not
        notice, but the contract asks for the cross-entropy.
    softmax_twice: softmax was taken twice
        torch.log_softmax(logits, -> torch.log_softmax(torch.softmax(logits, dim=-1),
        Logits go in. log_softmax takes their softmax itself.
    no_logarithm: probabilities without their logarithm
        torch.log_softmax( -> torch.softmax(
        A cross-entropy is made of log-probabilities.
    plain_number: a plain number, from which nothing can be learned
        losses[targets != pad_id].mean() -> losses[targets != pad_id].mean().item()
        A loss is a 0-dim tensor, so that gradients can start from it.
    softmax_over_dim_1: the softmax runs over dimension 1, and the words may lie in another one
        torch.log_softmax(logits, dim=-1) -> torch.log_softmax(logits, dim=1)
        The V words lie in the last dimension. Which one is that, counted from the front, if there are three?
""")

# ---------------------------------------------------------------- alignment


def cases_alignment(draw):
    def weights(H, T_t, T_s, dtype=torch.float32):
        """Rows that sum to 1, whose mean over the heads has one clear maximum."""
        while True:
            rows = torch.softmax(draw.normal(H, T_t, T_s, dtype=torch.float64, scale=1.5), dim=-1)
            best = rows.mean(dim=0).sort(dim=-1, descending=True).values
            if T_s == 1 or bool((best[:, 0] - best[:, 1] > 1e-3).all()):
                return rows.to(dtype)

    return [
        Case((weights(3, 6, 5),)),
        Case((weights(4, 7, 5),)),
        Case((weights(2, 6, 6),), part="as many target words as source words"),
        Case((weights(1, 4, 6),), part="one head"),
        Case((weights(2, 1, 5),), part="one target word"),
        Case((weights(3, 4, 1),), part="one source word"),
        Case((weights(3, 5, 5),), part="as many words on both sides"),
        Case((weights(5, 3, 8),), part="more words in the source"),
        Case((weights(4, 7, 5, torch.float64),), part="float64"),
        Case((weights(4, 7, 5),), part=ELSEWHERE, via="on_views", note=TRANSPOSED),
    ]


alignment = Exercise("alignment", cases_alignment, axes=("target word",)).with_mistakes("""
    one_head_only: only the first head is used
        cross_weights.mean(dim=0) -> cross_weights[0]
        All heads count. Which dimension do they have?
    largest_of_any_head: the largest weight of any head was taken
        cross_weights.mean(dim=0) -> cross_weights.amax(dim=0)
        Average over the heads first, and choose the maximum afterwards.
    best_target_word: for each source word the best target word
        argmax(dim=-1) -> argmax(dim=0)
        Each target word chooses a source position. Which dimension holds the source positions?
    turned_when_square: as many words on both sides: for each source word the best target word
        cross_weights.mean(dim=0).argmax(dim=-1)
        -> cross_weights.mean(dim=0).argmax(dim=-1 if cross_weights.shape[1] != cross_weights.shape[2] else 0)
        A square tells you nothing about which dimension is which. Where does the contract put the target?
    first_place_left_out: the first target position has no result
        mean(dim=0).argmax -> mean(dim=0)[1:].argmax
        Each target position has a row of weights. How many rows are there, and how long is your result?
    each_head_for_itself: one answer for each head
        cross_weights.mean(dim=0).argmax(dim=-1) -> cross_weights.argmax(dim=-1)
        Return one position per target word. What happens to the heads first?
    heads_vote: each head has one vote
        cross_weights.mean(dim=0).argmax(dim=-1)
        -> F.one_hot(cross_weights.argmax(dim=-1), cross_weights.shape[-1]).sum(dim=0).argmax(dim=-1)
        A head that hesitates should count less than one that is sure: take the mean of the weights first.
    places_averaged: the positions of the heads are averaged
        cross_weights.mean(dim=0).argmax(dim=-1) -> cross_weights.argmax(dim=-1).double().mean(dim=0).round().long()
        The mean of positions 1 and 5 is 3, to which no head attends. Average the weights first.
    places_averaged_and_cut: the positions of the heads are averaged and rounded down
        cross_weights.mean(dim=0).argmax(dim=-1) -> cross_weights.argmax(dim=-1).double().mean(dim=0).long()
        The mean of positions 1 and 5 is 3, to which no head attends. Average the weights first.
    center_of_the_weights: the center of the weights
        cross_weights.mean(dim=0).argmax(dim=-1)
        -> (cross_weights.double().mean(dim=0) @ torch.arange(cross_weights.shape[-1]).double()).round().long()
        The mean of positions 1 and 5 is 3, to which no head attends. Which single position has the largest weight?
    shifted_by_one: each target position has the result of the previous one
        .argmax(dim=-1) -> .argmax(dim=-1).roll(1)
        Row t of the weights already belongs to word t of the target.
    counted_from_one: positions are counted from 1
        .argmax(dim=-1) -> .argmax(dim=-1) + 1
        The first source word is at position 0.
    last_head_only: only the last head is used
        cross_weights.mean(dim=0) -> cross_weights[-1]
        All heads count. Which dimension do they have?
    heads_multiplied: the heads' weights were multiplied
        cross_weights.mean(dim=0) -> cross_weights.prod(dim=0)
        With a product, one head with a weight of 0 decides alone. The contract asks for the mean.
    smallest: the position with the smallest weight
        argmax -> argmin
        A large weight means that the model attends to this position.
    weight_returned: the weight itself, not its position
        .argmax(dim=-1) -> .amax(dim=-1)
        Which one is wanted: how much, or where?
    list_returned: a list instead of a LongTensor
        .argmax(dim=-1) -> .argmax(dim=-1).tolist()
        The positions are right, but they are Python numbers. Return a LongTensor.
    averaged_over_targets: averaged over the target positions, not over the heads
        cross_weights.mean(dim=0).argmax(dim=-1) -> cross_weights.mean(dim=1).argmax(dim=-1)
        Which of the three dimensions counts the heads?
    one_row_late: each target position has the result of the next one
        .argmax(dim=-1) -> .argmax(dim=-1)[[*range(1, cross_weights.shape[1]), -1]]
        Row t of the weights already belongs to word t of the target.
""")

# ---------------------------------------------------------------- corpus_bleu

STRINGS = "sentences as strings"
SHORT = "sentences of fewer than four words"
NONE_RIGHT = "no four words in a row are right"


def cases_corpus_bleu(draw):
    words = "la le chat chien pomme rouge mange une un belle fille petit garçon voit donne".split()

    def pairs(lengths, changes):
        """Candidates that are references with some words changed, dropped or said twice."""
        candidates, references = [], []
        for length, change in zip(lengths, changes, strict=True):
            reference = [draw.choice(words) for _ in range(length)]
            candidate = list(reference)
            for kind in change:
                index = draw.integer(0, len(candidate))
                if kind == "other":
                    candidate[index] = "zut"
                elif kind == "less":
                    candidate.pop()
                elif kind == "more":
                    candidate.append(candidate[-1])
                elif kind == "twice":
                    candidate += candidate[:4]
            candidates.append(candidate)
            references.append(reference)
        return candidates, references

    def joined(rows, space=" "):
        return [space.join(row) for row in rows]

    usual = pairs([7, 9, 6, 8], [("other",), (), ("less", "less"), ("other", "more")])
    other = pairs([8, 10, 7], [("other", "less"), (), ("less",)])
    long = pairs([6, 8, 7], [("more",), ("twice",), ("more", "more")])
    broken_once = pairs([6, 8], [("other",), ("less",)])
    same = pairs([5, 7, 6], [(), (), ()])
    short = pairs([2, 9, 3, 8], [("less",), ("other",), (), ()])
    poor = pairs([3, 3, 2], [(), ("other",), ()])
    broken = (
        [["le", "chat", "zut", "mange", "une", "pomme"], ["la"]],
        [["le", "chat", "voit", "mange", "une", "pomme"], ["la"]],
    )
    lone = pairs([9], [("other",)])
    thrice = ([usual[0][0], other[0][0]] * 2 + [usual[0][0]], [usual[1][0], other[1][0]] * 2 + [usual[1][0]])
    mixed = ([usual[0][0], [], usual[0][1]], [usual[1][0], usual[1][2], usual[1][1]])
    repeated = ([["le"] * 7, other[0][1]], [["le", "chat", "voit", "le", "chien"], other[1][1]])
    apart = (
        [["le", "le", "chat", "mange", "une", "pomme"], ["chien", "voit", "une", "fille", "petit"]],
        [["le", "chat", "mange", "une", "pomme"], ["le", "chien", "voit", "une", "fille"]],
    )
    exchanged = "la fille petit donne un chien".split()
    alike = (  # a capital, letters that only run together alike, two words exchanged, one candidate twice
        ["Le chat mange une pomme rouge part out".split(), exchanged, exchanged],
        ["le chat mange une pomme rouge par tout".split(), "la petit fille donne un chien".split(), other[1][0]],
    )
    marked = [  # words as they stand between the spaces: marks are words, and an apostrophe belongs to one
        "jane visite l' afrique , en juin",
        "Le chat mange une pomme !",
        "paul aime l afrique en mai .",
        "jane visite l' afrique en juin .",
        "le chat mange une pomme .",
        "paul aime l' afrique en mai .",
    ]
    return [
        Case(pairs([6, 5], [("other",), ()])),
        Case(usual),
        Case(other, part="candidates that are too short"),
        Case(long, part="candidates that are too long"),
        Case(repeated, part="one word again and again"),
        Case(apart, part="a word of another sentence's reference"),
        Case(alike, part="words that are nearly alike"),
        Case(tuple(side * 2 + [side[0]] for side in broken_once), part="sentences that come several times"),
        Case(same, part="everything right"),
        Case(short, part=SHORT),
        Case(poor, part=NONE_RIGHT),
        Case(broken, part=NONE_RIGHT),
        Case(mixed, part="an empty candidate"),
        Case(([[], []], [["le", "chat"], ["la"]]), part="an empty candidate"),
        Case(lone, part="one sentence"),
        Case(thrice, part="a pair that comes again"),
        Case((joined(usual[0], "  "), joined(usual[1], "\t")), part=STRINGS, note="words two spaces or a tab apart"),
        Case(
            ([*joined(short[0][:2]), *short[0][2:]], [short[1][0], *joined(short[1][1:])]),
            part=STRINGS,
            note="sentences as strings and as lists of words",
        ),
        Case((marked[:3], marked[3:]), part=STRINGS),
    ]


def mean_of_sentences(candidates, references):
    from helpers.blocks import corpus_bleu as one

    return sum(one([c], [r]) for c, r in zip(candidates, references, strict=True)) / len(candidates)


def split(sentences):
    return [text.split() if isinstance(text, str) else text for text in sentences]


def clipped_over_all(candidates, references):
    score = 1.0
    for n in range(4):
        mine, theirs = (
            sum((Counter(zip(*(words[i:] for i in range(n + 1)), strict=False)) for words in split(texts)), Counter())
            for texts in (candidates, references)
        )
        if not (mine & theirs):
            return 0.0
        score *= (mine & theirs).total() / mine.total()
    length, wanted = (sum(map(len, split(texts))) for texts in (candidates, references))
    return 100 * min(1.0, math.exp(1 - wanted / length)) * score**0.25


def mean_penalty(candidates, references):
    from helpers.blocks import corpus_bleu as whole

    pairs = list(zip(split(candidates), split(references), strict=True))
    length, wanted = (sum(map(len, texts)) for texts in zip(*pairs, strict=True))
    if length == 0:
        return 0.0
    each = [min(1.0, math.exp(1 - len(b) / len(a))) if a else 0.0 for a, b in pairs]
    return whole(candidates, references) / min(1.0, math.exp(1 - wanted / length)) * sum(each) / len(each)


def precisions_of_sentences(candidates, references):
    pairs, score = list(zip(split(candidates), split(references), strict=True)), 1.0
    for n in range(4):
        grams = [[Counter(zip(*(words[i:] for i in range(n + 1)), strict=False)) for words in pair] for pair in pairs]
        shares = [(mine & theirs).total() / mine.total() for mine, theirs in grams if mine]
        score *= sum(shares) / len(shares) if shares else 0.0
    length, wanted = (sum(map(len, texts)) for texts in zip(*pairs, strict=True))
    return 100 * min(1.0, math.exp(1 - wanted / length)) * score**0.25 if length else 0.0


corpus_bleu = Exercise("corpus_bleu", cases_corpus_bleu).with_mistakes(
    """
    not_clipped: repeated words are counted twice, though the reference has them once
        (mine & theirs).values() -> (count for gram, count in mine.items() if gram in theirs)
        Seven times the same word, and each time it is in the reference. How often may it count?
    each_once: each n-gram counts once, however often it occurs
        mine = Counter(zip(*(candidate[i:] for i in range(n + 1)), strict=False))
        -> mine = Counter(set(zip(*(candidate[i:] for i in range(n + 1)), strict=False)))
        A word that occurs twice in both counts twice.
    each_hit_once: an n-gram that is right twice counts once
        sum((mine & theirs).values()) -> len(mine & theirs)
        A word that occurs twice in both counts twice.
    marks_deleted: punctuation was deleted from the strings
        text.split() if -> "".join(c for c in text if c not in ",.!?;:").split() if
        This exercise splits only at white space, so punctuation is a word like any other.
    small_letters: capitals of the strings were made small
        text.split() if -> text.lower().split() if
        This exercise splits at white space and does no more. Here “Le” and “le” are two words.
    one_added: one was added to all counts
        if min(found) == 0: -> found, made = [f + 1 for f in found], [m + 1 for m in made]
        |    if min(found) == 0 or length == 0:
        That is a smoothing, which keeps a score from being 0. This exercise asks for none.
    last_one_missing: the last n-gram of each sentence is missing
        (candidate[i:] for -> (candidate[i:-1] for
        (reference[i:] for -> (reference[i:-1] for
        How many pairs are there in a sentence of three words?
    pairs_counted_once: a pair that comes several times counts once
        zip(candidates, references, strict=True):
        -> {(str(c), str(r)): (c, r) for c, r in zip(candidates, references, strict=True)}.values():
        The counts run over all sentences, and so do the lengths. What does your code do with equal ones?
    letters: strings were cut into letters
        text.split() if isinstance(text, str) else list(text) for -> list(text) for
        A string is a sequence of letters. What are the words of this one?
    zeros_left_out: precisions that are 0 were left out
        if min(found) == 0:
        -> found, made = ([x for x, f in zip(c, found, strict=True) if f] for c in (found, made))
        |    if not found:
        zip(found, made, strict=True)) / 4) -> zip(found, made, strict=True)) / len(found))
        One factor of 0 makes a product 0.
    clipped_over_all: an n-gram may be taken from another sentence's reference
        A candidate is compared with its own reference. Clip in each sentence, and add up then.
    mean_penalty: each sentence has a brevity penalty of its own
        Lengths are added over all sentences first: one short sentence may be made up for by a long one.
    no_brevity_penalty: short candidates are not punished
        min(1.0, math.exp(1 - wanted / length)) * ->
        A candidate with a single safe word has a precision of 1. Which factor prevents this?
    brevity_the_wrong_way: long candidates are punished and short ones are not
        1 - wanted / length -> 1 - length / wanted
        Precision already punishes words too many. Which ones does the penalty have to catch?
    brevity_turned_over: the two lengths are exchanged in the penalty
        min(1.0, math.exp(1 - wanted / length)) -> (1.0 if length > wanted else math.exp(1 - length / wanted))
        A candidate of half the length: is 1 minus your quotient above or below 0?
    brevity_on_the_wrong_side: short candidates are let off, and long ones get a factor above 1
        min(1.0, math.exp(1 - wanted / length)) -> (1.0 if length < wanted else math.exp(1 - wanted / length))
        Which ones does the penalty have to catch?
    length_always_punished: the factor for the length can exceed 1
        min(1.0, math.exp(1 - wanted / length)) -> math.exp(1 - wanted / length)
        A long candidate shall not be rewarded for its length.
    mean_of_sentences: the mean over sentences, each with a score of its own
        Counts are added over all sentences first, and divided once.
    arithmetic_mean: the four precisions were averaged, not multiplied
        math.exp(sum(math.log(f / m) for f, m in zip(found, made, strict=True)) / 4)
        -> sum(f / m for f, m in zip(found, made, strict=True)) / 4
        The mean is geometric: a precision of 0 makes the whole 0.
    arithmetic_mean_with_zeros: the four precisions were averaged, not multiplied
        if min(found) == 0: -> if length == 0:
        math.exp(sum(math.log(f / m) for f, m in zip(found, made, strict=True)) / 4)
        -> sum(f / max(m, 1) for f, m in zip(found, made, strict=True)) / 4
        The mean is geometric: a precision of 0 makes the whole 0.
    no_root: the four precisions were multiplied without the root
        zip(found, made, strict=True)) / 4) -> zip(found, made, strict=True)))
        The geometric mean of four values ends with a fourth root.
    divided_by_words: all four precisions were divided by the number of words
        made[n] += sum(mine.values()) -> made[n] += len(candidate)
        How many pairs are there in a sentence of three words, and how many triples?
    at_least_one: a sentence with fewer than n words is counted as if it had one n-gram
        made[n] += sum(mine.values()) -> made[n] += max(1, sum(mine.values()))
        Published code guards against a 0 in that way, in each sentence. What does this exercise say of a sentence of fewer
        than n words?
    exchanged: candidates and references are exchanged
        zip(candidates, references, strict=True): -> zip(references, candidates, strict=True):
        Of all n-grams that the candidate has: how many are right?
    split_at_one_space: strings were split at each single space
        text.split() if -> text.split(" ") if
        What does your code make of two spaces in a row, and what of a tab?
    precisions_of_sentences: each sentence has precisions of its own, and these were averaged
        Counts are added over all sentences first, and divided once.
    penalty_without_exp: the penalty is the quotient of the lengths
        math.exp(1 - wanted / length) -> length / wanted
        Both are 1 for equal lengths. Which function is applied to the quotient in the formula of the penalty?
    recall: divided by the n-grams of the reference
        made[n] += sum(mine.values()) -> made[n] += sum(theirs.values())
        Of all n-grams that the candidate has: how many are right?
    between_0_and_1: a number from 0 to 1
        return 100 * -> return 1.0 *
        BLEU is given on a scale to 100.
    up_to_trigrams: the longest n-grams are missing
        found, made = [0] * 4, [0] * 4 -> found, made = [0] * 3, [0] * 3
        for n in range(4) -> for n in range(3)
        zip(found, made, strict=True)) / 4) -> zip(found, made, strict=True)) / 3)
        BLEU-4 counts n-grams of one, two, three and four words.
    joined: all sentences were joined into one
        for pair in zip(candidates, references, strict=True):
        -> lists = [[text.split() if isinstance(text, str) else list(text) for text in texts] for texts in (candidates, references)]
        |    for pair in [[[word for text in texts for word in text] for texts in lists]]:
        Do the last word of a sentence and the first one of the next make a pair?
    root_cut: the product was taken first and divided by four afterwards
        math.exp(sum(math.log(f / m) for f, m in zip(found, made, strict=True)) / 4)
        -> math.exp(sum(math.log(f / m) for f, m in zip(found, made, strict=True))) / 4
        Python takes powers before it divides: 16**1/4 is 4.
    fourth_root_of_three: the longest n-grams are missing
        if min(found) == 0: -> if min(found[:3]) == 0:
        zip(found, made, strict=True)) / 4) -> zip(found[:3], made[:3], strict=True)) / 4)
        BLEU-4 counts n-grams of one, two, three and four words.
""",
    mean_of_sentences=mean_of_sentences,
    clipped_over_all=clipped_over_all,
    mean_penalty=mean_penalty,
    precisions_of_sentences=precisions_of_sentences,
)


# ---------------------------------------------------------------- translate

SENTENCES = 600  # three wrong ones pass the check: room for the rounding of another processor
SCRIPTED = 8  # more sentences, for models that say what a script has
SHORT_ONES = 9  # words


def cases_translate(draw):
    pairs = sentence_pairs(SENTENCES + 40, draw.python, unseen=True)
    pairs, others = [*pairs[: SENTENCES - 1], pairs[0]], [pair.english for pair in pairs[SENTENCES:]]
    others = [text for text in dict.fromkeys(others) if len(text.split()) <= SHORT_ONES][:SCRIPTED]
    others.sort(key=lambda text: -len(text.split()))
    english, french = [pair.english for pair in pairs], [pair.french for pair in pairs]
    alone = max(range(SENTENCES), key=lambda i: len(french[i].split()) - len(english[i].split()))
    said, again = scripted(others, 0), scripted(others, 1)
    truth = {
        "said": said,
        "again": again,
        "endless": scripted(others[:2], 2),
        "asked": True,
        "begun": True,
        "memory": True,
    }
    return [
        Case((english,), truth=french),
        Case(([english[alone]],), truth=[french[alone]]),
        Case((others,), via="with_scripts", truth=truth, note="a model that says something else"),
    ]


translate = Exercise("translate", cases_translate, metric="exact_translations", time_limit=90.0).with_mistakes("""
    marks_left_in: special tokens are among the words
        The sentence is between the special tokens. What should happen to these?
    eos_not_heard: your loop does not stop a row at its eos
        The model decides where a sentence ends. How does your loop notice that a row is finished, and what happens to
        ids after that?
    model_not_repeated: the predictions of the model have no effect
        The check replaced your model by another one, and the first words did not change. Does your function call
        `model`?
    does_not_begin_with_bos: the decoder does not begin with bos
        What was the first token that the decoder read in training?
    eos_put_off: eos is the most likely token, but another one is written
        A sentence may be short, because the model decides where it ends. Which tokens does your code exclude?
    not_the_likeliest: a word is written that is not the most likely one
        Greedy decoding takes the most likely word at each step, without sampling, search or excluded words.
    memory_kept: the decoder attends to the memory of another sentence
        Each sentence has its own memory. What does your code keep from one call to the next?
    answers_kept: a sentence that was translated before is not translated again
        With another model the translation is another one. What does your code keep from call to call?
    repeats_dropped: a repeated word is written only once
        The model chooses each word. Which of its words does your code remove?
    cut_without_eos: a row without eos lacks words at its end
        Such a row stops when it is MAX_LEN ids long, bos included. Does your slice remove eos, or always the last id?
        And after how many ids does your loop stop?
    right_alone: a sentence comes out right by itself, and wrong among others
        Something changes for a sentence in a batch with longer ones. On which side does `src` pad it, and does `decode`
        get the `src` that belongs to the memory?
    another_alone: a sentence comes out otherwise by itself than among others
        Print the shapes for a list of one sentence. Which dimension is not there, or has another size?
    says_too_much: more words than the model predicts up to eos, or other ones
        Your loop stops at eos, but eos comes too late. Does `decode` get the real `src`, so that padding is masked?
    cut_short: sentences lack their end
        Does your loop stop too early, as when one row is done and others are not? Or at a number of words? Leave that to
        the model: a translation may be longer than its source.
    goes_on_after_the_end: the sentence goes on after its end
        Rows of a batch end at different steps. What should happen to ids after the first eos of a row?
    first_word_missing: each sentence lacks its first word
        bos is cut off. What else is cut off with it?
    last_word_missing: each sentence lacks its last word
        The ids before eos belong to the sentence. Where does your slice end?
    spaces: the words are right, and there are spaces too many
        Words are separated by one space, with none at the beginning or end. Print repr of a result.
    first_word_again: the next word does not come from all the words before it
        What does the decoder read before it predicts the second word? And which position's logits do you use?
    without_spaces: the words are run together
        One space separates two words. What does `join` put between them in your code?
    another_order: the right sentences, in another order
        Return the translations in the order of the sentences. Did your code sort them on the way?
    not_trained: nearly no word is right
        Print your result for two sentences, and check that each has its own translation. If so, check the model. Has
        the training cell run, not in quick mode, and which loss and accuracy did it reach? If these are good, the
        model has seen its targets, so check the mask, tgt_in and tgt_out with the figures above.
""")

exercises = [make_batch, token_accuracy, noam_lr, label_smoothed_loss, translate, alignment, corpus_bleu]

quizzes = listed_quizzes("""
    quiz_1: c
        a: The entropy of the smoothed target is 0.8475 nats, and no model can have a lower loss.
        b: A learning rate that is too large would keep the accuracy low as well. Compute the smallest possible loss
           before you search for an error.
        c: Right. The loss is only a hundredth above its minimum of 0.8475, and the accuracy shows that the training
           worked.
    quiz_2: b
        a: A model that has memorized the training sentences would have a high loss on unseen ones.
        b: Right. With teacher forcing the answer is in the input, for new sentences too. When the model writes, it is
           not there.
        c: Then the source would say nothing about the target, and the loss could not become so low.
        d: With a loss of 0.01 nats per word there is a clear first choice almost everywhere, so greedy decoding would
           work.
""")
