"""Cases and known mistakes of lesson 3's exercises."""

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, VALUES, Case, Exercise, listed_quizzes, tensor_cases

RESHAPED = "K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])"
COSINES = "Q / Q.norm(dim=-1, keepdim=True) @ (K / K.norm(dim=-1, keepdim=True)).transpose(-2, -1)"


def _search(draw, dtype=torch.float32):
    """Seven keys of width 5. Dot product, cosine, distance, length and |dot product| each select another key."""
    query = draw.normal(5)
    query = query / query.norm()
    other = draw.normal(5)
    other = other - (other @ query) * query
    other = other / other.norm()
    keys = torch.stack(
        [
            2.0 * query + 2.0 * other,  # largest dot product
            0.3 * query,  # largest cosine
            0.9 * query + 0.2 * other,  # nearest
            5.0 * other,  # longest
            -4.0 * query,  # largest |dot|, smallest dot
            -0.5 * query - other,
            0.1 * query - 0.7 * other,
        ]
    )
    return query.to(dtype), keys[draw.permutation(7)].to(dtype), draw.normal(7, 3, dtype=dtype)


def _opposed(draw):
    """Every dot product is negative, and the largest one is not the first."""
    query = draw.normal(4)
    query = query / query.norm()
    sizes = torch.tensor([-3.0, -2.0, -0.5, -4.0, -1.0])
    return query, sizes[:, None] * query, draw.normal(5, 3)


def cases_hard_lookup(draw):
    whole = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 5.0], [3.0, -1.0], [1.0, 3.0]])  # dot products: 2 5 5 5 5
    ties = torch.tensor([2.0, 1.0]), whole, draw.normal(5, 3)
    last_but_one = torch.tensor([1.0, 2.0, -1.0]), torch.tensor([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    wide = draw.normal(6), draw.normal(9, 6), draw.normal(9, 4)
    return [
        Case(_search(draw)),
        Case(wide),
        Case(_search(draw, torch.float64), part=DTYPE),
        Case(_search(draw, torch.float64), part=GRADIENT, gradient=True, no_gradient=(0, 1)),
        Case(ties, part="first on ties"),
        Case((*last_but_one, draw.normal(3, 4)), part="first on ties"),
        Case(_opposed(draw), part="all matches negative"),
        Case((draw.normal(3), draw.normal(1, 3), draw.normal(1, 2)), part="one key"),
        Case((draw.normal(3), draw.normal(4, 3), draw.normal(4, 1)), part="values of width 1"),
    ]


def cases_project(draw):
    def square(dtype, *lead):
        return draw.normal(*lead, 4, dtype=dtype), draw.normal(4, 4, dtype=dtype)

    def wide(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(6, 4, dtype=dtype)

    return [
        Case(square(torch.float32, 5)),
        *tensor_cases(wide),
        Case(square(torch.float32), part="one token, shape (d_in,)"),
        Case((draw.normal(4), draw.normal(3, 4)), part="one token, shape (d_in,)"),
    ]


def cases_attention_scores(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(*lead, 7, 4, dtype=dtype)

    large = 100 * draw.normal(5, 4, dtype=torch.float64), 100 * draw.normal(7, 4, dtype=torch.float64)
    return [
        *tensor_cases(make),
        Case(large, part="large scores", note="scores in the ten thousands"),
        Case((draw.normal(3, 6), draw.normal(3, 6)), part="as many queries as keys"),
        Case((draw.normal(4, 4, 4), draw.normal(4, 4, 4)), part=LEADING, note="four sentences of four tokens, width 4"),
        Case((draw.normal(1, 4), draw.normal(6, 4)), part="one query"),
    ]


def cases_previous_token_weights(draw):
    sizes = [(5, VALUES), (draw.integer(7, 12), VALUES), (3, VALUES), (2, "max_len = 2")]
    sizes += [(200, "max_len in the hundreds"), (1000, "max_len in the hundreds")]
    cases = [Case((n,), part=part, view="previous_token") for n, part in sizes]
    return [*cases, Case((6,), part="float32 weights", view="pair_dtypes")]


def cases_two_channel_graph(draw):
    def graph(T):
        """A random graph: several tokens attend to the same one, one token to an earlier one, and one to itself."""
        looks_at = draw.integers(0, T, (T,))
        looks_at[:4] = torch.tensor([T - 2, 2, 2, T - 1])
        return (looks_at,)

    def tried(looks_at, **options):
        return Case((torch.as_tensor(looks_at),), view="graph_of_weights", **options)

    return [
        tried([1, 2, 1], note="jane, visits and africa: looks_at 1, 2, 1"),
        Case(graph(7), view="graph_of_weights"),
        Case(graph(11), view="graph_of_weights"),
        tried(draw.permutation(9), part="every token attends to another one", note="a permutation of nine tokens"),
        tried(torch.arange(6), part="every token attends to itself", note="looks_at 0, 1, 2, 3, 4, 5"),
        tried([3] * 8, part="all attend to one token", note="eight tokens, all of which attend to token 3"),
        tried([1, 0], part="T = 2", note="looks_at 1, 0"),
        Case(graph(50), view="graph_of_weights", part="T = 50", note="fifty tokens"),
        Case(graph(5), view="pair_dtypes", part="float32 weights"),
    ]


def cases_bigram_probabilities(draw):
    def text(length, vocab_size):
        """Ids in which every id below vocab_size has a successor and the pair (0, 1) occurs at least three times."""
        start = torch.tensor([0, 1] * 3)
        return torch.cat((start, draw.integers(0, vocab_size, (length,)), torch.arange(vocab_size), torch.tensor([2])))

    last_only = torch.cat((draw.integers(0, 4, (15,)), torch.tensor([5])))
    return [
        Case((text(30, 5), 5)),
        Case((text(60, 7), 7)),
        Case((text(900, 3), 3), note="a text of 910 tokens"),
        Case((text(12, 4), 9), part="a token that never occurs"),
        Case((last_only, 6), part="a token that occurs only at the end"),
        Case((torch.arange(5), 5), part="a token that occurs only at the end"),
        Case((torch.tensor([3]), 4), part="a text of one token"),
        Case((torch.tensor([1, 0]), 3), part="a text of two tokens"),
        Case((torch.tensor([2, 2, 2, 2]), 3), part="a token that follows itself"),
    ]


def cases_attention_edges(draw):
    words = draw.sample(["jane", "visits", "africa", "I", "like", "to", "eat", "apples", "short", "first"], 6)

    def distinct(n, parts):
        """Weights k / parts, with each k from 1 to n * n once, so that thresholds between them are unambiguous."""
        return (draw.permutation(n * n) + 1.0).view(n, n) / parts

    tied = torch.tensor(
        [
            [0.250, 0.500, 0.125, 0.125],
            [0.500, 0.250, 0.000, 0.250],
            [0.125, 0.125, 0.500, 0.250],
            [0.250, 0.250, 0.500, 0.000],
        ]
    )
    # The alphabetical order of these words is neither their order in the sentence nor its reverse.
    order = ["dessert", "life", "apples", "is"]
    again = ["to", "be", "or", "not", "to"]
    masked = torch.tensor([[1.0, 0.0], [0.375, 0.625]])
    return [
        Case((distinct(5, 32.0), words[:5], 9.5 / 32)),
        Case((distinct(6, 64.0), words, 20.5 / 64)),
        Case((distinct(5, 30.0).double() * (32 / 31), words[:5], 0.32), part="float64 weights"),
        Case((tied, order, 0.125), part="ties by position"),
        Case((torch.full((5, 5), 0.25), words[:5], 0.25), part="ties by position", note="25 equal weights"),
        Case((tied, order, 0.25), part="equal to the threshold"),
        Case((distinct(5, 32.0), again, 0.0), part="a word that occurs twice"),
        Case((torch.full((5, 5), 0.25, dtype=torch.float64), again, 0.25), part="a word that occurs twice"),
        Case((masked, ["jane", "visits"], 0.0), part="weights of zero"),
        Case((tied, order, 0.9), part="no edge"),
        Case((torch.ones(1, 1), ["jane"], 0.5), part="one token"),
    ]


def cases_fixed_self_scores(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), *(draw.normal(3, 4, dtype=dtype) for _ in range(2))

    def one(dtype):
        return draw.normal(1, 4, dtype=dtype), *(draw.normal(2, 4, dtype=dtype) for _ in range(2))

    cases = [*tensor_cases(make, leads=((), (2,), (6, 2))), Case(one(torch.float32), part="one token")]
    cases.append(
        Case(
            (draw.normal(4, 4, 5), draw.normal(4, 5), draw.normal(4, 5)),
            part=LEADING,
            note="as many sentences as tokens",
        )
    )
    return cases


exercises = [
    Exercise("hard_lookup", cases_hard_lookup, axes=("value",)).with_mistakes("""
    by_cosine: the key with the best direction
        keys @ query -> keys @ query / keys.norm(dim=-1)
        The dot product also rewards a long key. Leave the keys' lengths as they are.
    nearest_key: the key at the smallest distance
        keys @ query -> -(keys - query).norm(dim=-1)
        The nearest key need not have the largest dot product. Which of the two does the formula maximize?
    soft_average: a weighted average of all values
        values[matches.argmax()] -> torch.softmax(matches, dim=0) @ values
        That is the soft lookup of later lessons. A hard lookup returns a single row.
    last_on_ties: the last key wins a tie
        matches.argmax() -> len(matches) - 1 - matches.flip(0).argmax()
        If several keys have the same dot product, the first one counts. Which one does your code keep?
    starts_from_zero: a search that starts with a best match of 0
        matches.argmax() -> matches.clamp(min=0).argmax()
        What happens when every dot product is negative?
    smallest_match: the worst match
        argmax -> argmin
        A large dot product is a good match. Which one does your function pick?
    returns_the_key: a key instead of a value
        return values[ -> return keys[
        You compare with the keys, but the returned row must come from the values.
    returns_the_position: the index of the best key
        values[matches.argmax()] -> matches.argmax()
        You have found the index. Now select that row of the values.
"""),
    Exercise("project", cases_project, axes=("token", "channel")).with_mistakes("""
    not_transposed: the matrix used as (in, out)
        x @ W.T -> x @ W
        W is stored as (out, in). Which of its dimensions has to match the width of the tokens?
    reshaped_weights: a reshape where a transpose is meant
        W.T -> W.reshape(W.shape[1], W.shape[0])
        A reshape keeps the entries in their order. Which operation turns rows into columns?
    tokens_as_columns: tokens in columns
        x @ W.T -> W @ x.transpose(-2, -1)
        Each token should remain a row of the result. Yours are columns.
    all_axes_reversed: right for one sentence, an error in a batch
        x @ W.T -> (W @ x.T).T
        `.T` reverses all dimensions of a tensor. Which two should be swapped?
    scaled: divided by the square root of the width
        x @ W.T -> x @ W.T / W.shape[-1] ** 0.5
        Nothing is divided here; scaling comes in the next lesson.
"""),
    Exercise("attention_scores", cases_attention_scores, axes=("query", "key")).with_mistakes(f"""
    queries_and_keys_swapped: keys and queries swapped
        Q @ K.transpose -> K @ Q.transpose
        A row belongs to a query, a column to a key.
    reshaped_keys: a reshape where a transpose is meant
        K.transpose(-2, -1) -> {RESHAPED}
        The shape fits, but a reshape keeps the entries in their order. Which operation turns rows into columns?
    first_two_axes: the first two dimensions swapped
        transpose(-2, -1) -> transpose(0, 1)
        This is right for a single sentence, but in a batch the first dimension is the batch. Count from the end.
    only_for_batches: made for a batch only
        transpose(-2, -1) -> transpose(1, 2)
        Without a batch there is no dimension 2. Count the dimensions from the end.
    batch_of_three_axes: made for three axes only
        K.transpose(-2, -1) -> K.permute(0, 2, 1)
        Without a batch there are only two axes, so don't count on three. (In einsum, `...` stands for any leading axes.)
    all_axes_reversed: all dimensions reversed
        K.transpose(-2, -1) -> K.permute(*range(K.dim() - 1, -1, -1))
        This is right for a single sentence, but in a batch it reverses the batch dimension as well.
    scaled: divided by the square root of the width
        K.transpose(-2, -1) -> K.transpose(-2, -1) / K.shape[-1] ** 0.5
        Scaling comes in the next lesson. Return the plain dot products.
    cosines: cosines
        Q @ K.transpose(-2, -1) -> {COSINES}
        A dot product depends on the lengths of queries and keys. Don't normalize them.
    softmaxed: attention weights that add up to 1
        Q @ K.transpose(-2, -1) -> torch.softmax(Q @ K.transpose(-2, -1), dim=-1)
        Return the scores themselves, before any softmax.
"""),
    Exercise("previous_token_weights", cases_previous_token_weights, time_limit=10.0).with_mistakes("""
    looks_at_itself: every token attends to itself
        W_q[steps - 1, steps] -> W_q[steps, steps]
        Query t has its largest score with key t. It should be key t - 1.
    looks_ahead: every token attends to the next one: shifted the wrong way, or W_q and W_k exchanged
        W_q[steps - 1, steps] -> W_q[steps, steps - 1]
        Column t of W_q is the query of token t. In which direction did you shift?
    always_the_first: every token attends to the first one
        W_q[steps - 1, steps] -> W_q[steps * 0, steps]
        Query 2 needs key 1, and query 3 needs key 2, so the queries must differ.
    all_before_tie: all earlier tokens tie
        W_q[steps - 1, steps] = 1.0 -> W_q += torch.triu(torch.ones(max_len, max_len), 1)
        Every earlier token gets the same score, but that of the previous token must be strictly higher.
    last_query_forgotten: the last query is forgotten, so all its scores are equal
        torch.arange(1, max_len) -> torch.arange(1, max_len - 1)
        Check the end of the range: the last token needs a query as well.
    weights_turned: weights of shape (max_len, d)
        return W_q, W_k -> return torch.cat((W_q, W_q)).T, torch.cat((W_k, W_k)).T
        W has shape (out, in), and the tokens have width max_len.
"""),
    Exercise("bigram_probabilities", cases_bigram_probabilities, axes=("current token", "next token")).with_mistakes("""
    transposed: columns are the current token
        1 / vocab_size) -> 1 / vocab_size).T.contiguous()
        Rows must belong to the current token, so that each row adds up to 1.
    given_the_next: the current token given the next
        ids[:-1] * vocab_size + ids[1:] -> ids[1:] * vocab_size + ids[:-1]
        The rows add up to 1, but they belong to the second token of each pair instead of the first.
    zero_rows: rows of zeros for tokens without a follower
        counts / followed, 1 / vocab_size -> counts / followed, 0.0
        A row of zeros isn't a distribution. Which distribution gives every token the same probability?
    nan_rows: 0 divided by 0
        torch.where(followed > 0, counts / followed, 1 / vocab_size) -> counts / followed
        A token that is never followed has a sum of 0. Treat it separately, for example with torch.where.
    columns_divided: columns divided by the sums of the rows
        sum(dim=1, keepdim=True) -> sum(dim=1)
        Sums of shape (V,) are broadcast along the rows. Which argument of sum keeps the dimension?
    columns_normalized: columns that add up to 1, not rows
        counts.sum(dim=1, keepdim=True) -> counts.sum(dim=0, keepdim=True)
        The sum over dimension 0 counts what comes before a token. Over which dimension do you add what follows it?
    joint_probabilities: divided by the number of all pairs
        sum(dim=1, keepdim=True) -> sum()
        That is the joint probability of both tokens. In a conditional distribution each row adds up to 1.
    divided_by_occurrences: divided by how often the token occurs
        counts.sum(dim=1, keepdim=True) -> torch.bincount(ids, minlength=vocab_size)[:, None]
        The last token of the text occurs once more than it is followed.
    repeated_pairs_lost: a pair counted once however often it comes
        vocab_size**2).view -> vocab_size**2).clamp(max=1).view
        Indexed addition with += counts a repeated index only once. Which way of counting adds 1 for each pair?
    softmax_of_counts: a softmax of the counts
        torch.where(followed > 0, counts / followed, 1 / vocab_size) -> torch.softmax(counts.float(), dim=-1)
        Three of four followers should give the probability 3/4, and a word that never followed should give 0. Does a softmax do this?
"""),
    Exercise("two_channel_graph", cases_two_channel_graph).with_mistakes("""
    keys_on_a_line: all keys are on a line, so only its two ends can win
        (angle.cos(), angle.sin()) -> (angle, torch.ones_like(angle))
        A key between two others can never have the largest score. On which closed curve is no point between two others?
    circle_closed_twice: the first key and the last one are equal
        / len(looks_at) -> / (len(looks_at) - 1)
        The last angle is a full turn, so it equals the first. How many steps does the circle need?
    longer_and_longer_keys: keys of different lengths, so that long keys win too often
        (angle.cos(), angle.sin()) -> (angle * angle.cos(), angle * angle.sin())
        A dot product depends on direction and length. Let the keys differ only in direction.
    looks_at_itself: every token attends to itself
        W_k[:, looks_at] -> W_k
        The result doesn't depend on looks_at. Which of the two matrices should?
    exchanged: the graph read backwards, or W_q and W_k exchanged
        return W_k[:, looks_at], W_k -> return W_k, W_k[:, looks_at]
        looks_at[t] is the token that query t attends to. Does it select among the keys or among the queries?
    a_channel_for_each_token: as many channels as tokens
        return W_k[:, looks_at], W_k -> return torch.eye(len(looks_at))[:, looks_at], torch.eye(len(looks_at))
        The graph is right, but only two channels are allowed. A plane has infinitely many directions.
"""),
    Exercise("attention_edges", cases_attention_edges).with_mistakes("""
    query_and_key_swapped: key before query
        (tokens[i], tokens[j], weight) -> (tokens[j], tokens[i], weight)
        Rows of the matrix are queries, and each tuple starts with the query.
    self_edges_left_out: no edges from a token to itself
        enumerate(row)] -> enumerate(row) if i != j]
        A token may attend to itself, so keep such edges.
    strictly_above: edges equal to the threshold left out
        >= threshold -> > threshold
        At least the threshold: does that include equality?
    lightest_first: lightest first
        -edge[2] -> edge[2]
        Sorting is ascending by default.
    unsorted: in reading order
        sorted(edges, key=lambda edge: -edge[2]) -> edges
        The heaviest edge should come first.
    sorted_as_tuples: sorted by the words, from the end of the alphabet
        key=lambda edge: -edge[2] -> reverse=True
        Python compares the first entries of tuples first. Which entry should decide?
    positions_for_tokens: positions instead of tokens
        (tokens[i], tokens[j], weight) -> (i, j, weight)
        The list should contain the words, not their positions.
    ties_by_alphabet: ties in alphabetical order
        edge: -edge[2] -> edge: (-edge[2], edge[0], edge[1])
        Edges of equal weight are ordered by position, so the sorting key must not contain the strings.
    ties_backwards: ties from the end
        sorted(edges, key=lambda edge: -edge[2]) -> sorted(edges, key=lambda edge: edge[2])[::-1]
        Reversing the whole order reverses the ties as well.
"""),
    Exercise("fixed_self_scores", cases_fixed_self_scores, axes=("query", "key")).with_mistakes(f"""
    published_version: still the bug, a reshape instead of a transpose
        K.transpose(-2, -1) -> {RESHAPED}
        Follow one key through the reshape. Do its entries stay together?
    queries_twice: the queries' weights used twice
        x @ W_k.T -> x @ W_q.T
        Your scores are symmetric, because W_k is never used.
    keys_twice: the keys' weights used twice
        x @ W_q.T -> x @ W_k.T
        Your scores are symmetric, because W_q is never used.
    keys_and_queries_swapped: keys and queries swapped
        Q @ K.transpose -> K @ Q.transpose
        Rows must belong to queries.
    first_two_axes: the first two dimensions swapped
        transpose(-2, -1) -> transpose(0, 1)
        This is right for a single sentence, but in a batch the first dimension is the batch. Count from the end.
    all_axes_reversed: all dimensions reversed
        K.transpose(-2, -1) -> K.permute(*range(K.dim() - 1, -1, -1))
        This is right for a single sentence, but in a batch it reverses the batch dimension as well.
    scaled: divided by the square root of the width
        K.transpose(-2, -1) -> K.transpose(-2, -1) / W_q.shape[0] ** 0.5
        Fix only the bug; scaling comes in the next lesson.
"""),
]

quizzes = listed_quizzes("""
    quiz_1: d
        a: In (6, 16) times (24, 16) the inner widths 16 and 24 differ, so this raises an error. W is stored as (out, in).
        b: In (24, 16) times (6, 16) the inner widths 16 and 6 differ. The tokens would have to be columns first.
        c: A square W would hide the problem, because there would be no error, but the map would be wrong. The widths of
           queries and tokens may differ, and here they do.
        d: This is the notation of textbooks, with tokens as columns, transposed at the end. (24, 16) times (16, 6) is (24, 6),
           and its transpose is (6, 24). It is the same map as X @ W.T.
    quiz_2: b
        a: A score depends on two vectors only, and in the first layer both are rows of the embedding table. Context
           enters by competition, and in higher layers because the vectors have been mixed.
        b: Neither the query of jane nor the key of visits depends on the third word. But the attention weights are
           computed from all scores of the row, so another third word may take more or less of the weight.
        c: The score stays the same, but a weight depends on all scores of the row, and one of them has changed.
""")
