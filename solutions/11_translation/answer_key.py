"""Cases and known mistakes of lesson 11: batches, the smoothed loss, the learning rate, accuracy, the translator."""

import torch
import torch.nn.functional as F

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, Case, Exercise, listed_quizzes
from helpers.corpus import sentence_pairs
from helpers.lessons.translation.probes import scripted

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
        Fill short rows with the id that is given for padding.
    padded_on_the_left: padding comes before the words
        [*row, *[pad_id] * (longest - len(row))] -> [*[pad_id] * (longest - len(row)), *row]
        In your tensor, the first word of a short sentence is not at position 0. On which side should the padding be?
    transposed: rows and columns are exchanged, so each sentence fills a column
        for row in rows])  # (B, T) -> for row in rows]).T  # (T, B)
        Print the shape of one of your tensors for five short pairs. Which dimension counts the sentences? If you use
        pad_sequence, look up its argument batch_first.
    eos_behind_the_padding: eos is at the end of the row, after the padding
        "tgt_out": padded([[*tgt, eos_id] for _, tgt in pairs])
        -> "tgt_out": torch.cat([padded([tgt for _, tgt in pairs]), torch.full((len(pairs), 1), eos_id)], dim=1)
        eos marks the end of the sentence, so it has to come right after the last word.
    eos_in_the_source: the source ends with eos
        padded([src for -> padded([[*src, eos_id] for
        Which of the three tensors contain special tokens? Count the columns of src.
    begins_with_the_first_word: tgt_in does not begin with bos
        [bos_id, *tgt] for -> tgt for
        What does the decoder read when it has to predict the first word?
    eos_is_read: tgt_in contains eos as well
        [bos_id, *tgt] for -> [bos_id, *tgt, eos_id] for
        The decoder doesn't need to read eos, because nothing comes after it. tgt_in and tgt_out have the same width.
    bos_is_said: tgt_out begins with bos
        [*tgt, eos_id] for -> [bos_id, *tgt, eos_id] for
        The decoder reads bos at position 0 and never has to predict it. tgt_in and tgt_out have the same width.
    both_in_both: tgt_in and tgt_out both have bos and eos
        [bos_id, *tgt] for -> [bos_id, *tgt, eos_id] for
        [*tgt, eos_id] for -> [bos_id, *tgt, eos_id] for
        The decoder reads bos but never has to predict it. Which of the two special tokens does it have to predict?
    eos_not_said: tgt_out does not end with eos
        [*tgt, eos_id] for -> tgt for
        Without eos the decoder can't learn to stop. tgt_in and tgt_out have the same width.
    marks_in_the_source: the source has bos and eos
        padded([src for -> padded([[bos_id, *src, eos_id] for
        Which of the three tensors contain special tokens? Count the columns of src.
    one_width_for_all: source and target are padded to a common width
        longest = max(len(row) for row in rows) -> longest = max(max(len(s), len(t) + 1) for s, t in pairs)
        Each tensor is only as wide as its own longest row.
""")

# ---------------------------------------------------------------- token_accuracy

PADDING = "padding left out"


def scores(draw, *shape, dtype=torch.float32, gap=0.05):
    """Logits (..., V) in which the largest entry of each row exceeds all others by at least `gap`."""
    logits = draw.normal(*shape, dtype=dtype)
    best = logits.argmax(dim=-1, keepdim=True)
    return logits.scatter_add(-1, best, torch.full_like(logits, gap))


def lined_up(draw, B, T, V, pad_id=0, lengths=None, share=0.6):
    """Logits (B, T, V) and targets (B, T) with padding behind `lengths`. The fraction `share` is predicted correctly."""
    targets = draw.integers(0, V, (B, T))
    targets = torch.where(targets == pad_id, (targets + 1) % V, targets)
    for row, length in zip(targets, lengths or [T] * B, strict=True):
        row[length:] = pad_id
    logits = scores(draw, B, T, V)
    right = draw.uniform(B, T) < share
    lift = torch.where(right, 6.0, 0.0)[..., None]
    return logits.scatter_add(-1, targets[..., None], lift), targets


def cases_token_accuracy(draw):
    def case(B, T, V, pad_id=0, lengths=None, dtype=torch.float32, **options):
        logits, targets = lined_up(draw, B, T, V, pad_id, lengths)
        if lengths:  # padding is predicted at some padded positions, and at one real position
            padded = targets == pad_id
            lift = torch.where(padded & (draw.uniform(B, T) < 0.5), 12.0, 0.0)
            logits[..., pad_id] += lift
            logits[0, 0, targets[0, 0]] += 10.0  # right if padding were excluded
            logits[0, 0, pad_id] += 40.0
        return Case((logits.to(dtype), targets, pad_id), **options)

    flat, targets = lined_up(draw, 1, 8, 6, lengths=[6])
    zero_is_a_word = torch.tensor([[0, 2, 1, 3, 3]])  # here 3 is padding
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
        case(3, 6, 8, lengths=[6, 2, 4], dtype=torch.float64, part="float64"),
    ]


token_accuracy = Exercise("token_accuracy", cases_token_accuracy, weights={PADDING: 5}).with_mistakes("""
    padding_counted: the version with the bug, which counts padding like words
        right[mask].float() -> right.float()
        Padded positions should not count at all. How many positions of the batch remain?
    padding_is_right: padded positions count as correct
        right[mask].float().mean() -> (right | ~mask).float().mean()
        Padded positions should not count at all. How many positions of the batch remain?
    divided_by_sentences: the number of correct words is divided by the number of sentences
        return right[mask].float().mean().item() -> return (right & mask).sum().item() / len(targets)
        The accuracy is the fraction of words that are correct. By which number do you divide?
    divided_by_all_places: only correct words are counted, but divided by the number of all positions
        right[mask].float().mean().item() -> (right & mask).float().mean().item()
        Numerator and denominator must cover the same positions.
    padding_among_the_right: correct padding is counted, but the divisor is the number of words
        return right[mask].float().mean().item() -> return (right.sum() / mask.sum()).item()
        Numerator and denominator must cover the same positions.
    padding_is_zero: id 0 is always treated as padding
        targets != pad_id -> targets != 0
        Padding may have another id. Where does your code use pad_id?
    kept_by_the_guess: positions where the model predicts padding are left out
        mask = targets != pad_id -> mask = logits.argmax(dim=-1) != pad_id
        Does the prediction or the target decide whether a position is padding?
    mean_of_sentence_means: each sentence counts the same, however long
        return right[mask].float().mean().item()
        -> return ((right & mask).float().sum(-1) / mask.sum(-1)).mean().item()
        A long sentence has more words than a short one, so take one mean over all words.
    in_percent: the result is a percentage
        .mean().item() -> .mean().item() * 100
        The result should be a fraction from 0 to 1.
    count_returned: the number of correct words instead of their fraction
        .float().mean().item() -> .float().sum().item()
        Divide by the number of words that count.
""")

# ---------------------------------------------------------------- noam_lr


def cases_noam_lr(draw):
    def case(step, d_model, warmup, **options):
        return Case((step, d_model, warmup), tolerance=small(step, d_model, warmup), **options)

    def small(step, d_model, warmup):
        """A millionth of the learning rate, because small rates have to be compared by their ratio."""
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
    larger_of_the_two: the larger of the two terms is taken
        min( -> max(
        At step 1 the learning rate should be small. Which of the two terms is small there?
    no_warm_up: the learning rate falls from the first step
        min(step**-0.5, step * warmup**-1.5) -> step**-0.5
        One of the two terms grows with the step. In your code it is never the smaller one during the warm-up.
    never_falls: the learning rate keeps growing after the warm-up
        min(step**-0.5, step * warmup**-1.5) -> step * warmup**-1.5
        One of the two terms falls with the step. Your code never uses it.
    flat_after_warm_up: the learning rate stays constant after the warm-up
        min(step**-0.5, -> min(warmup**-0.5,
        After the warm-up the learning rate should fall with the inverse square root of the step.
    counted_from_the_warm_up: after the warm-up, steps are counted from its end
        min(step**-0.5, step * warmup**-1.5)
        -> ((step - warmup) ** -0.5 if step > warmup else step * warmup**-1.5)
        At step = warmup both terms must be equal. From where does your falling term count the steps?
    height_forgotten: the shape is right, but the peak doesn't depend on the warm-up
        min(step**-0.5, step * warmup**-1.5) -> min(step / warmup, (warmup / step) ** 0.5)
        The peak is at step = warmup. What does the formula give there?
    counted_from_zero: the step is increased by one
        return -> step = step + 1
        |    return
        The argument step already counts from 1.
    minus_a_half_undone: Python computes 4**-1/2 as (4**-1)/2
        d_model**-0.5 -> d_model**-1 / 2
        min(step**-0.5, step * warmup**-1.5) -> min(step**-1 / 2, step * warmup**-3 / 2)
        Powers come before divisions, so write exponents as decimal numbers, such as -0.5.
    width_not_used: the width is not used
        d_model**-0.5 *  ->
        Wider models should get a smaller learning rate.
    grows_with_the_width: wider models get a larger learning rate
        d_model**-0.5 -> d_model**0.5
        The width appears in the formula with a negative exponent.
    divided_by_the_width: divided by the width instead of its square root
        d_model**-0.5 -> d_model**-1.0
        Which power of the width is in the formula?
    peak_too_high: the two terms are not equal at the last step of the warm-up
        warmup**-1.5 -> warmup**-0.5
        At step = warmup both terms must be equal. Compare their powers of warmup there.
""")

# ---------------------------------------------------------------- label_smoothed_loss

NO_SMOOTHING, LARGE = "smoothing of 0", "large logits"


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
        case(
            3, 4, V=8, smoothing=0.0, scale=150.0, part=NO_SMOOTHING, note="some words certain, so that their loss is 0"
        ),
        case(3, 4, V=8, smoothing=0.0, lengths=[4, 2, 3], part=NO_SMOOTHING),
        case(6, V=5, part="no batch"),
        case(2, 1, 4, V=5, part=LEADING),
        case(1, 1, V=5, part="one word"),
        case(
            2, 4, V=6, scale=800.0, top=0.0, dtype=f64, part=LARGE, note="logits far apart, of which the largest is 0"
        ),
        case(2, 4, V=6, top=800.0, dtype=f64, part=LARGE, note="logits around 800"),
        case(3, 6, V=9, lengths=[6, 2, 4], dtype=f64, part=DTYPE),
        case(3, 6, V=9, lengths=[6, 2, 4], dtype=f64, part=GRADIENT, gradient=True),
        case(3, 5, V=7, smoothing=0.3, dtype=f64, part=GRADIENT, gradient=True),
    ]


# An infinite or NaN loss ends the training, so an answer without a safe softmax loses half of the points.
label_smoothed_loss = Exercise(
    "label_smoothed_loss",
    cases_label_smoothed_loss,
    forbidden=("cross_entropy_alone",),
    instead="build it from log-probabilities.",
    weights={PADDING: 8, LARGE: 26},
).with_mistakes("""
    padding_counted: padding is included in the mean
        losses[targets != pad_id].mean() -> losses.mean()
        Padded positions have no target, so take the mean over the others only.
    padding_in_one_term: padding is left out of the term with 1 − ε, but not of the term with ε
        return losses[targets != pad_id].mean()
        -> return -(1 - smoothing) * true[targets != pad_id].mean() - smoothing * even.mean()
        Both terms are means over positions. Which positions does the second one include?
    divided_by_all_places: the sum over words is divided by the number of all positions
        losses[targets != pad_id].mean() -> losses.masked_fill(targets == pad_id, 0.0).mean()
        Numerator and denominator must cover the same positions.
    mean_of_sentence_means: each sentence counts the same, however long
        losses[targets != pad_id].mean()
        -> (losses * (targets != pad_id)).sum(-1).div((targets != pad_id).sum(-1)).mean()
        Take one mean over all words of the batch.
    shares_exchanged: the correct word got the small probability
        -(1 - smoothing) * true - smoothing * even -> -smoothing * true - (1 - smoothing) * even
        With smoothing 0 the result must be the plain cross-entropy.
    spread_over_the_others: ε is divided among the other words only
        log_p.mean(dim=-1) -> (log_p.sum(dim=-1) - true) / (log_p.shape[-1] - 1)
        All V words get ε / V, including the correct one. Which probability does the correct word have in total?
    true_word_overwritten: the correct word has 1 − ε and no part of ε
        losses = -(1 - smoothing) * true - smoothing * even
        -> losses = -(1 - smoothing) * true - smoothing * even + smoothing * true / log_p.shape[-1]
        The V probabilities of your target don't sum to 1, because the correct word also gets ε / V.
    spread_over_v_minus_2: ε is divided among V − 2 words
        log_p.mean(dim=-1) -> (log_p.sum(dim=-1) - true - log_p[..., pad_id]) / (log_p.shape[-1] - 2)
        Some published code leaves out the correct word and padding. In this exercise, ε is divided among all V words.
    padding_is_zero: id 0 is always treated as padding
        targets != pad_id -> targets != 0
        Padding may have another id. Where does your code use pad_id?
    log_of_softmax: the logarithm of a probability that is 0
        torch.log_softmax(logits, dim=-1) -> torch.softmax(logits, dim=-1).log()
        With large logits a probability can round to 0, and its logarithm is minus infinity. Lesson 6 showed a safer
        way.
    each_word_the_whole: every word gets ε instead of ε / V
        log_p.mean(dim=-1) -> log_p.sum(dim=-1)
        The target is a distribution. What do its V probabilities sum to?
    true_word_keeps_all: the correct word's term is not multiplied by 1 − ε
        -(1 - smoothing) * true -> -true
        The target is a distribution. What do the V probabilities in yours sum to?
    divergence: the cross-entropy minus the entropy of the target
        even  # (...)
        -> even - sum(-q * math.log(q) * k for q, k in ((1 - smoothing + smoothing / log_p.shape[-1], 1), (smoothing / log_p.shape[-1], log_p.shape[-1] - 1)) if q > 0)  # (...)
        Your result is too small by the entropy of the smoothed target. The gradients are the same, but the exercise
        asks for the cross-entropy.
""")

# ---------------------------------------------------------------- alignment


def cases_alignment(draw):
    def weights(H, T_t, T_s, dtype=torch.float32):
        """Attention weights whose mean over the heads has one clear maximum in each row."""
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
        Case((weights(5, 3, 8),), part="more words in the source"),
        Case((weights(4, 7, 5, torch.float64),), part="float64"),
    ]


alignment = Exercise("alignment", cases_alignment, axes=("target word",)).with_mistakes("""
    one_head_only: only the first head is used
        cross_weights.mean(dim=0) -> cross_weights[0]
        All heads count. Which dimension of cross_weights do they have?
    largest_of_any_head: the largest weight of any single head is taken
        cross_weights.mean(dim=0) -> cross_weights.amax(dim=0)
        Average over the heads first and then take the maximum.
    best_target_word: the best target word for each source word
        argmax(dim=-1) -> argmax(dim=0)
        Each target word chooses a source position. Which dimension holds the source positions?
    each_head_for_itself: the heads are not averaged
        cross_weights.mean(dim=0).argmax(dim=-1) -> cross_weights.argmax(dim=-1)
        Return one position per target word. What should happen to the heads first?
    heads_vote: each head has one vote
        cross_weights.mean(dim=0).argmax(dim=-1)
        -> F.one_hot(cross_weights.argmax(dim=-1), cross_weights.shape[-1]).sum(dim=0).argmax(dim=-1)
        Take the mean of the weights first, so that a head with nearly equal weights counts less than a sharp one.
    places_averaged: the positions of the heads are averaged
        cross_weights.mean(dim=0).argmax(dim=-1) -> cross_weights.argmax(dim=-1).float().mean(dim=0).long()
        The mean of positions 1 and 5 is 3, to which neither head attends. Average the weights instead.
    counted_from_one: positions are counted from 1
        .argmax(dim=-1) -> .argmax(dim=-1) + 1
        The first source word is at position 0.
    weight_returned: the largest weight instead of its position
        .argmax(dim=-1) -> .amax(dim=-1)
        The exercise asks for positions. Which function returns the index of the largest entry?
    averaged_over_targets: averaged over the target positions instead of the heads
        cross_weights.mean(dim=0).argmax(dim=-1) -> cross_weights.mean(dim=1).argmax(dim=-1)
        Which of the three dimensions counts the heads?
""")

# ---------------------------------------------------------------- corpus_bleu

STRINGS = "sentences as strings"
SHORT = "sentences of fewer than four words"
NONE_RIGHT = "no four words in a row are right"


def cases_corpus_bleu(draw):
    words = "la le chat chien pomme rouge mange une un belle fille petit garçon voit donne".split()

    def pairs(lengths, changes):
        """(candidates, references): each candidate is its reference with some words changed, dropped or repeated."""
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
    alike = (  # a capital letter, words split at another position, two words exchanged, a repeated candidate
        ["Le chat mange une pomme rouge part out".split(), exchanged, exchanged],
        ["le chat mange une pomme rouge par tout".split(), "la petit fille donne un chien".split(), other[1][0]],
    )
    marked = [  # split at spaces only: punctuation marks are words, and an apostrophe belongs to its word
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
        Case(lone, part="one sentence"),
        Case(thrice, part="a pair that comes again"),
        Case((joined(usual[0], "  "), joined(usual[1], "\t")), part=STRINGS, note="words two spaces or a tab apart"),
        Case((marked[:3], marked[3:]), part=STRINGS),
    ]


def mean_of_sentences(candidates, references):
    from helpers.blocks import corpus_bleu as one

    return sum(one([c], [r]) for c, r in zip(candidates, references, strict=True)) / len(candidates)


# BLEU over letters instead of words is meaningless, so STRINGS weighs as much as all other parts.
corpus_bleu = Exercise("corpus_bleu", cases_corpus_bleu, weights={STRINGS: 30}).with_mistakes(
    """
    not_clipped: repeated words count more often than the reference contains them
        (mine & theirs).values() -> (count for gram, count in mine.items() if gram in theirs)
        An n-gram may count at most as often as it occurs in its reference.
    each_hit_once: an n-gram that is correct twice counts only once
        sum((mine & theirs).values()) -> len(mine & theirs)
        A word that occurs twice in the candidate and twice in the reference counts twice.
    one_added: one is added to all counts
        if min(found) == 0: -> found, made = [f + 1 for f in found], [m + 1 for m in made]
        |    if min(found) == 0 or length == 0:
        This is a kind of smoothing, which keeps the score from being 0. The exercise asks for none.
    letters: strings are split into letters
        text.split() if isinstance(text, str) else list(text) for -> list(text) for
        Iterating over a string gives its letters. Which method splits it into words?
    no_brevity_penalty: the brevity penalty is missing
        min(1.0, math.exp(1 - wanted / length)) * ->
        A candidate that consists of one safe word has perfect precision. Which factor lowers its score?
    brevity_the_wrong_way: long candidates are penalized instead of short ones
        1 - wanted / length -> 1 - length / wanted
        Precision already penalizes candidates that are too long, so the other factor must penalize those that are too
        short.
    length_always_punished: the factor for the length can exceed 1
        min(1.0, math.exp(1 - wanted / length)) -> math.exp(1 - wanted / length)
        A long candidate should not get a reward for its length. Which function limits the factor to 1?
    mean_of_sentences: a mean of the scores of single sentences
        Add the counts over all sentences first, and divide once at the end.
    arithmetic_mean: the arithmetic mean of the four precisions
        math.exp(sum(math.log(f / m) for f, m in zip(found, made, strict=True)) / 4)
        -> sum(f / m for f, m in zip(found, made, strict=True)) / 4
        The formula has the geometric mean, the fourth root of the product.
    no_root: the product of the four precisions without its root
        zip(found, made, strict=True)) / 4) -> zip(found, made, strict=True)))
        The geometric mean of four values is the fourth root of their product.
    divided_by_the_reference: the matches are divided by the number of n-grams in the reference
        made[n] += sum(mine.values()) -> made[n] += sum(theirs.values())
        That is recall. Precision is the fraction of the candidate's n-grams that are correct.
    up_to_three: n-grams of one to three words
        found, made = [0] * 4, [0] * 4 -> found, made = [0] * 3, [0] * 3
        in range(4): -> in range(3):
        strict=True)) / 4) -> strict=True)) / 3)
        The 4 of BLEU-4 is the length of its longest n-grams. Which n does your loop try last?
""",
    mean_of_sentences=mean_of_sentences,
)


# ---------------------------------------------------------------- translate

SENTENCES = 600  # three may be wrong, because another processor may round differently
SCRIPTED = 8  # additional sentences, for models that follow a script
SHORT_ONES = 9  # maximum number of words in a scripted sentence


def cases_translate(draw):
    pairs = sentence_pairs(SENTENCES + 40, draw.python, unseen=True)
    pairs, others = [*pairs[: SENTENCES - 1], pairs[0]], [pair.english for pair in pairs[SENTENCES:]]
    others = [text for text in dict.fromkeys(others) if len(text.split()) <= SHORT_ONES][:SCRIPTED]
    others.sort(key=lambda text: -len(text.split()))
    english, french = [pair.english for pair in pairs], [pair.french for pair in pairs]
    alone = max(range(SENTENCES), key=lambda i: len(french[i].split()) - len(english[i].split()))
    said, again = scripted(others, 0), scripted(others, 1)
    truth = {"said": said, "again": again, "endless": scripted(others[:2], 2), "asked": True, "begun": True}
    return [
        Case((english,), truth=french),
        Case(([english[alone]],), truth=[french[alone]]),
        Case((others,), via="with_scripts", truth=truth, note="another model in place of yours"),
    ]


translate = Exercise("translate", cases_translate, metric="exact_translations", time_limit=90.0).with_mistakes("""
    marks_left_in: special tokens are among the words
        Remove bos, eos and padding before you join the words.
    eos_not_heard: your loop does not stop a row at its eos
        The model decides where a sentence ends. How does your loop notice that a row is finished, and what happens to
        the ids after that?
    model_not_repeated: the predictions of the model have no effect
        The check replaced your model with another one, and the first words didn't change. Does your function call
        `model`?
    does_not_begin_with_bos: the decoder does not begin with bos
        What is the first token that the decoder reads in training?
    eos_put_off: eos is the most likely token, but your function writes another one
        The model decides where a sentence ends, even if it is short. Which tokens does your code exclude?
    not_the_likeliest: your function writes a word that is not the most likely one
        Greedy decoding takes the most likely word at each step, without sampling, search or excluded words.
    cut_without_eos: a row without eos loses words at its end
        Such a row stops when it is MAX_LEN ids long, bos included. Does your slice remove eos, or always the last id?
        And after how many ids does your loop stop?
    right_alone: a sentence is right when it is translated alone, but wrong in a batch
        A batch with longer sentences changes the result. On which side do you pad `src`, and does `decode` get the
        `src` that
        belongs to the memory?
    another_alone: a sentence is translated differently alone than in a batch
        Print the shapes for a list of one sentence. Which dimension is missing or has another size?
    says_too_much: the words differ from those that the model predicts up to eos, or there are more of them
        Your loop stops at eos, but eos comes too late. Does `decode` get the real `src`, so that it can mask the
        padding?
    cut_short: sentences end too early
        Does your loop stop when the first row is finished, or after a fixed number of words? The model decides, and a
        translation may be longer than its source.
    goes_on_after_the_end: words after the first eos are included
        Rows of a batch end at different steps. What should happen to ids after the first eos of a row?
    first_word_missing: each sentence lacks its first word
        You remove bos. What else do you remove with it?
    last_word_missing: each sentence lacks its last word
        All ids before eos belong to the sentence. Where does your slice end?
    spaces: the words are right, but there are extra spaces
        Words are separated by one space, with none at the beginning or end. Print the repr of a result.
    first_word_again: the next word is not predicted from all words before it
        What does the decoder read before it predicts the second word? And which position's logits do you use?
    another_order: the sentences are right, but in another order
        Return the translations in the order of the sentences. Does your code sort them?
    not_trained: almost no word is right
        Print your result for two sentences, and check that each has its own translation. If so, check the model. Has
        the training cell run, without quick mode, and which loss and accuracy did it reach? If these are good, the
        model has seen its targets, so check the mask, tgt_in and tgt_out with the figures above.
""")

exercises = [make_batch, token_accuracy, noam_lr, label_smoothed_loss, translate, alignment, corpus_bleu]

quizzes = listed_quizzes("""
    quiz_1: c
        a: The entropy of the smoothed target is 0.8475 nats, and no model can have a lower loss.
        b: A learning rate that is too large would keep the accuracy low as well. Compute the smallest possible loss
           before you search for an error.
        c: The loss is only a hundredth above its minimum of 0.8475, and the accuracy shows that the training
           worked.
    quiz_2: b
        a: A model that has memorized the training sentences would have a high loss on unseen ones.
        b: With teacher forcing the answer is in the input, for new sentences too. When the model writes, it is
           not there.
        c: Then the source would say nothing about the target, and the loss could not become so low.
        d: With a loss of 0.01 nats per word there is a clear first choice almost everywhere, so greedy decoding would
           work.
""")
