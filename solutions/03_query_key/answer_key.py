"""Cases and known mistakes of lesson 3's exercises."""

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, VALUES, Case, Exercise, listed_quizzes, tensor_cases

RESHAPED = "K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])"
COSINES = "Q / Q.norm(dim=-1, keepdim=True) @ (K / K.norm(dim=-1, keepdim=True)).transpose(-2, -1)"


def _search(draw, dtype=torch.float32):
    """Seven keys of width 5 among which dot, cosine, distance, length and |dot| each have another winner."""
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
    whole = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 5.0], [3.0, -1.0], [1.0, 3.0]])  # with (2, 1): 2 5 5 5 5
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
        Case((draw.normal(1), draw.normal(4, 1), draw.normal(4, 3)), part="keys of width 1"),
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
        Case((draw.normal(5, 1), draw.normal(1, 1)), part="width 1"),
    ]


def cases_scores_for_one(draw):
    def square(dtype):
        return draw.normal(4, dtype=dtype), draw.normal(4, 4, dtype=dtype)

    def make(dtype, *lead):
        return draw.normal(*lead, 6, dtype=dtype), draw.normal(*lead, 5, 6, dtype=dtype)

    return [
        Case(square(torch.float32)),
        *tensor_cases(make, leads=((),)),
        Case((draw.normal(3), draw.normal(1, 3)), part="one key"),
        Case((draw.normal(1), draw.normal(5, 1)), part="d_k = 1"),
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
        Case((draw.normal(3, 1), draw.normal(2, 1)), part="d_k = 1"),
    ]


def cases_previous_token_weights(draw):
    sizes = [(5, VALUES), (draw.integer(7, 12), VALUES), (3, VALUES), (2, "max_len = 2")]
    sizes += [(200, "max_len in the hundreds"), (1000, "max_len in the hundreds")]
    cases = [Case((n,), part=part, view="previous_token") for n, part in sizes]
    return [*cases, Case((6,), part="float32 weights", view="pair_dtypes")]


def cases_two_channel_graph(draw):
    def graph(T):
        """Any graph in which somebody is looked at twice, somebody looks back, and somebody at itself."""
        looks_at = draw.integers(0, T, (T,))
        looks_at[:4] = torch.tensor([T - 2, 2, 2, T - 1])
        return (looks_at,)

    def tried(looks_at, **options):
        return Case((torch.as_tensor(looks_at),), view="graph_of_weights", **options)

    return [
        tried([1, 2, 1], note="jane, visits and africa: looks_at 1, 2, 1"),
        Case(graph(7), view="graph_of_weights"),
        Case(graph(11), view="graph_of_weights"),
        tried(draw.permutation(9), part="everybody looks at another one", note="a permutation of nine tokens"),
        tried(torch.arange(6), part="everybody looks at itself", note="looks_at 0, 1, 2, 3, 4, 5"),
        tried([3] * 8, part="all look at one token", note="eight tokens, all of which look at token 3"),
        tried([1, 0], part="T = 2", note="looks_at 1, 0"),
        Case(graph(50), view="graph_of_weights", part="T = 50", note="fifty tokens"),
        Case(graph(5), view="pair_dtypes", part="float32 weights"),
    ]


def cases_bigram_probabilities(draw):
    def text(length, vocab_size):
        """Every token below vocab_size is followed by something, and the pair (0, 1) comes at least three times."""
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
        Case((torch.tensor([0, 0, 0]), 1), part="a vocabulary of one token"),
    ]


def cases_attention_edges(draw):
    words = draw.sample(["jane", "visits", "africa", "I", "like", "to", "eat", "apples", "short", "first"], 6)

    def distinct(n, parts):
        """Weights k / parts, each k from 1 to n * n once. With thresholds between two of them nothing is rounded."""
        return (draw.permutation(n * n) + 1.0).view(n, n) / parts

    tied = torch.tensor(
        [
            [0.250, 0.500, 0.125, 0.125],
            [0.500, 0.250, 0.000, 0.250],
            [0.125, 0.125, 0.500, 0.250],
            [0.250, 0.250, 0.500, 0.000],
        ]
    )
    # Alphabetical order of these words is neither their order in the sentence nor its reverse.
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


SHAPE_CUT = "dimensions of size 1 dropped"
exercises = [
    Exercise("hard_lookup", cases_hard_lookup, axes=("value",)).with_mistakes(f"""
    by_cosine: the key with the best direction
        keys @ query -> keys @ query / keys.norm(dim=-1)
        The dot product also rewards a long key. Did you normalize something?
    nearest_key: the key at the smallest distance
        keys @ query -> -(keys - query).norm(dim=-1)
        Near and large dot product are two things. What does the formula maximize?
    soft_average: a weighted average of all values
        values[matches.argmax()] -> torch.softmax(matches, dim=0) @ values
        That is attention as later lessons build it. A SELECT returns one row.
    last_on_ties: the last key wins a tie
        matches.argmax() -> len(matches) - 1 - matches.flip(0).argmax()
        When a later key is only as good as the best so far, should it replace it?
    starts_from_zero: a search that starts with a best match of 0
        matches.argmax() -> matches.clamp(min=0).argmax()
        What happens when every dot product is negative?
    absolute_match: the largest match without its sign
        keys @ query -> (keys @ query).abs()
        A strongly negative dot product is the worst match, not a good one.
    smallest_match: the worst match
        argmax -> argmin
        Is a large dot product a good match or a bad one?
    longest_key: the longest key
        keys @ query -> keys.norm(dim=-1)
        Your answer does not depend on the query. Should it?
    returns_the_key: a key instead of a value
        return values[ -> return keys[
        You search in the keys. From which table do you return a row?
    returns_the_place: the place of the winner
        values[matches.argmax()] -> matches.argmax()
        You have found where. Now fetch what stands there.
    squeezed: {SHAPE_CUT}
        values[matches.argmax()] -> values[matches.argmax()].squeeze()
        With values of width 1 the result still has one dimension. Who removed it?
    kept_a_dimension: a row that is still a table
        argmax() -> argmax(dim=0, keepdim=True)
        The result has one dimension, (E,). Where does the extra one come from?
    adds_up_ties: the values of all tied keys added up
        values[matches.argmax()] -> (matches == matches.max()).to(values.dtype) @ values
        Comparing with the maximum marks every tied key. How many may win?
    no_gradient: cut off from the values
        values[matches.argmax()] -> values[matches.argmax()].detach()
        The values must learn from the result. What did you put the lookup under?
"""),
    Exercise("project", cases_project, axes=("token", "channel")).with_mistakes(f"""
    not_transposed: the matrix used as (in, out)
        x @ W.T -> x @ W
        W is stored as (out, in). Which of its dimensions meets the tokens' width?
    reshaped_weights: a reshape where a transpose is meant
        W.T -> W.reshape(W.shape[1], W.shape[0])
        A reshape keeps the numbers in reading order. Do rows become columns?
    tokens_as_columns: tokens in columns
        x @ W.T -> W @ x.transpose(-2, -1)
        Each token should stay a row. What would bring the columns back to rows?
    all_axes_reversed: right for one sentence, an error in a batch
        x @ W.T -> (W @ x.T).T
        What does .T do to a tensor of three dimensions? Which two should trade places?
    cosines: cosines with the rows of W
        x @ W.T -> x / x.norm(dim=-1, keepdim=True) @ (W / W.norm(dim=-1, keepdim=True)).T
        A linear map keeps lengths in play. What did you normalize?
    scaled: divided by a root of the width
        x @ W.T -> x @ W.T / W.shape[-1] ** 0.5
        Nothing is divided here; scaling is the next lesson.
    squeezed: {SHAPE_CUT}
        x @ W.T -> (x @ W.T).squeeze()
        A batch of one sentence is still a batch.
"""),
    Exercise("scores_for_one", cases_scores_for_one, axes=("key",)).with_mistakes(f"""
    cosines: cosines
        K @ q -> K @ q / K.norm(dim=-1) / q.norm()
        The lengths of query and keys count here.
    scaled: divided by the root of the width
        K @ q -> K @ q / q.shape[-1] ** 0.5
        These are plain dot products. Scaling is the next lesson.
    mean_of_products: the mean of the products
        K @ q -> (K * q).mean(-1)
        A dot product adds the products up. Does it divide by how many there are?
    softmaxed: shares that add up to 1
        K @ q -> torch.softmax(K @ q, dim=-1)
        The scores themselves are asked for, before any softmax.
    keys_not_turned: the query against the columns of K
        K @ q -> q @ K
        A key is a row of K. With a square K the shape alone does not tell.
    products_not_added: products that are not added up
        K @ q -> K * q
        One number for each key: which dimension must go?
    squeezed: {SHAPE_CUT}
        K @ q -> (K @ q).squeeze()
        With a single key the result still has shape (1,).
    still_a_row: a table with one row
        K @ q -> q[None] @ K.T
        One query, no batch: the result has one dimension.
    still_a_column: a table with one column
        K @ q -> K @ q[:, None]
        One query, no batch: the result has one dimension.
    negative_distance: minus the squared distance
        K @ q -> -((K - q) ** 2).sum(-1)
        Distance and dot product differ by the lengths. Which one is asked for?
    minus_distance: minus the distance
        K @ q -> -(K - q).norm(dim=-1)
        Distance and dot product differ by the lengths. Which one is asked for?
    distance: the distance from the query to each key
        K @ q -> (K - q).norm(dim=-1)
        A distance is small for a good match. Should the key that fits best have a small number or a large one?
"""),
    Exercise("attention_scores", cases_attention_scores, axes=("query", "key")).with_mistakes(f"""
    queries_and_keys_swapped: keys and queries swapped
        Q @ K.transpose -> K @ Q.transpose
        A row belongs to a query, a column to a key.
    reshaped_keys: a reshape where a transpose is meant
        K.transpose(-2, -1) -> {RESHAPED}
        The shape fits, but a reshape keeps the reading order. Do rows become columns?
    first_two_axes: the first two dimensions swapped
        transpose(-2, -1) -> transpose(0, 1)
        Right for one sentence. Which dimensions are the first two in a batch?
    only_for_batches: made for a batch only
        transpose(-2, -1) -> transpose(1, 2)
        Without a batch there is no third dimension. Count the dimensions from the end.
    all_axes_reversed: all dimensions reversed
        K.transpose(-2, -1) -> K.permute(*range(K.dim() - 1, -1, -1))
        Right for one sentence. What happens to the batch when every dimension is turned around?
    scaled: divided by the root of the width
        K.transpose(-2, -1) -> K.transpose(-2, -1) / K.shape[-1] ** 0.5
        Scaling is the next lesson. Here the plain dot products are asked for.
    divided_by_the_width: divided by the width
        K.transpose(-2, -1) -> K.transpose(-2, -1) / K.shape[-1]
        Does a dot product divide by how many products it adds up?
    cosines: cosines
        Q @ K.transpose(-2, -1) -> {COSINES}
        The lengths of queries and keys count here.
    softmaxed: shares that add up to 1
        Q @ K.transpose(-2, -1) -> torch.softmax(Q @ K.transpose(-2, -1), dim=-1)
        The scores themselves are asked for, before any softmax.
    negative_distance: minus the squared distance
        Q @ K.transpose(-2, -1) -> -((Q[..., :, None, :] - K[..., None, :, :]) ** 2).sum(-1)
        Distance and dot product differ by the lengths. Which one is asked for?
    minus_distance: minus the distance
        Q @ K.transpose(-2, -1) -> -(Q[..., :, None, :] - K[..., None, :, :]).norm(dim=-1)
        Distance and dot product differ by the lengths. Which one is asked for?
    distance: the distance from each query to each key
        Q @ K.transpose(-2, -1) -> (Q[..., :, None, :] - K[..., None, :, :]).norm(dim=-1)
        A distance is small for a good match. Should the key that fits best have a small number or a large one?
    squeezed: {SHAPE_CUT}
        Q @ K.transpose(-2, -1) -> (Q @ K.transpose(-2, -1)).squeeze()
        One query or a batch of one: the table keeps its dimensions.
"""),
    Exercise("previous_token_weights", cases_previous_token_weights, time_limit=10.0).with_mistakes("""
    looks_at_itself: every token looks at itself
        W_q[steps - 1, steps] -> W_q[steps, steps]
        Key t is now the best match of query t. Whose key should it be?
    looks_ahead: every token looks at the next one: shifted the wrong way, or W_q and W_k exchanged
        W_q[steps - 1, steps] -> W_q[steps, steps - 1]
        Column t of W_q is what token t seeks. In which direction did you shift?
    always_the_first: every token looks at the first one
        W_q[steps - 1, steps] -> W_q[steps * 0, steps]
        Query 2 wants key 1, query 3 wants key 2. Do your queries differ?
    two_before: every token looks two back
        arange(1, -> arange(2,
        steps - 1, -> steps - 2,
        One step too far.
    all_before_tie: all earlier tokens tie
        W_q[steps - 1, steps] = 1.0 -> W_q += torch.triu(torch.ones(max_len, max_len), 1)
        Every earlier token gets the same score. One of them must be strictly higher.
    last_query_forgotten: the last query is forgotten
        torch.arange(1, max_len) -> torch.arange(1, max_len - 1)
        Where does your range end?
    weights_turned: weights of shape (max_len, d)
        return W_q, W_k -> return torch.cat((W_q, W_q)).T, torch.cat((W_k, W_k)).T
        W is (out, in), and what comes in has width max_len.
    one_size_only: weights of one fixed size
        W_k = torch.eye -> max_len = 5
        |    W_k = torch.eye
        Your weights do not depend on max_len. Should they?
    float64_weights: float64 weights
        return W_q, W_k -> return W_q.double(), W_k.double()
        The weights shall be float32, like torch's own layers.
"""),
    Exercise("two_channel_graph", cases_two_channel_graph).with_mistakes("""
    keys_on_a_line: keys in a row, as on a line: only its two ends win
        (angle.cos(), angle.sin()) -> (angle, torch.ones_like(angle))
        Turn a ruler as you like: which of its marks can be farthest ahead? What shape has no ends?
    circle_closed_twice: the first key and the last one at the same place
        / len(looks_at) -> / (len(looks_at) - 1)
        Where does the last angle end up after a full turn?
    longer_and_longer_keys: keys of different lengths: the long ones shout
        (angle.cos(), angle.sin()) -> (angle * angle.cos(), angle * angle.sin())
        A dot product rewards direction and length. Which of the two should tell your keys apart?
    looks_at_itself: every token looks at itself
        W_k[:, looks_at] -> W_k
        Where does looks_at come in?
    looks_one_back: every token looks one back, whatever the graph
        W_k[:, looks_at] -> W_k.roll(1, dims=1)
        That was the last exercise. Where does looks_at come in?
    exchanged: the graph read backwards, or W_q and W_k exchanged
        return W_k[:, looks_at], W_k -> return W_k, W_k[:, looks_at]
        looks_at[t] says where token t looks. Does it choose among your keys, or among your queries?
    a_channel_for_each_token: as many channels as tokens
        return W_k[:, looks_at], W_k -> return torch.eye(len(looks_at))[:, looks_at], torch.eye(len(looks_at))
        That draws the graph. Now with two numbers for each key: how many different directions has a plane?
    weights_turned: weights of shape (T, 2)
        return W_k[:, looks_at], W_k -> return W_k[:, looks_at].T, W_k.T
        W is (out, in). Two channels come out.
    float64_weights: float64 weights
        return W_k[:, looks_at], W_k -> return W_k[:, looks_at].double(), W_k.double()
        The weights shall be float32, like torch's own layers.
"""),
    Exercise("bigram_probabilities", cases_bigram_probabilities, axes=("current token", "next token")).with_mistakes("""
    transposed: columns are the current token
        1 / vocab_size) -> 1 / vocab_size).T.contiguous()
        A row belongs to the current token, so each row adds up to 1.
    given_the_next: the current token given the next
        ids[:-1] * vocab_size + ids[1:] -> ids[1:] * vocab_size + ids[:-1]
        Rows add up to 1, but which word of a pair do they belong to?
    zero_rows: rows of zeros for tokens without a follower
        counts / followed, 1 / vocab_size -> counts / followed, 0.0
        A row of zeros is no distribution. What says nothing about the next word?
    nan_rows: 0 divided by 0
        torch.where(followed > 0, counts / followed, 1 / vocab_size) -> counts / followed
        A token that is never followed has a sum of 0. Treat it apart.
    columns_divided: columns divided by the sums of the rows
        sum(dim=1, keepdim=True) -> sum(dim=1)
        The sums have shape (V,), and are laid along a row. Which shape lies along a column?
    joint_probabilities: divided by the number of all pairs
        sum(dim=1, keepdim=True) -> sum()
        That is P(current and next). Given the current one, what does each row add up to?
    divided_by_occurrences: divided by how often the token occurs
        counts.sum(dim=1, keepdim=True) -> torch.bincount(ids, minlength=vocab_size)[:, None]
        The last token of the text occurs once more than it is followed.
    smoothed: one added to every count
        vocab_size**2).view -> vocab_size**2).add(1).view
        Pairs that never occur have probability 0 here. Did you smooth?
    text_closed_to_a_ring: the last token followed by the first
        ids[:-1] * -> ids *
        ids[1:] -> ids.roll(-1)
        Nothing comes after the last token.
    both_directions: neighbors counted in both directions
        followed = -> counts = counts + counts.T
        |    followed =
        Order matters: the pair (a, b) is not the pair (b, a).
    repeated_pairs_lost: a pair counted once however often it comes
        vocab_size**2).view -> vocab_size**2).clamp(max=1).view
        Adding at tensor indices writes repeated places only once. Try a text with a pair twice.
    softmax_of_counts: a softmax of the counts
        torch.where(followed > 0, counts / followed, 1 / vocab_size) -> torch.softmax(counts.float(), dim=-1)
        Of four followers three were the same word: what share is that? And what does your row give to a word that never came?
    only_counts: counts
        torch.where(followed > 0, counts / followed, 1 / vocab_size) -> counts.float()
        Each row should add up to 1.
    stays_where_it_is: a token without a follower followed by itself
        followed, 1 / vocab_size -> followed, torch.eye(vocab_size)
        Nothing was seen after it, not itself either.
    last_token_forgotten: a row of zeros for a token that is only last
        followed, 1 / vocab_size -> followed, (torch.bincount(ids, minlength=vocab_size)[:, None] == 0) / vocab_size
        A token may occur and still never be followed. Where?
    two_apart: tokens two apart
        ids[:-1] * vocab_size + ids[1:] -> ids[:-2] * vocab_size + ids[2:]
        Neighbors are one apart.
    float64: float64 probabilities
        counts / followed, -> counts.double() / followed,
        The table should be float32.
"""),
    Exercise("attention_edges", cases_attention_edges).with_mistakes("""
    query_and_key_swapped: key before query
        (tokens[i], tokens[j], weight) -> (tokens[j], tokens[i], weight)
        Rows of the table are queries, and a tuple starts with the query.
    self_edges_left_out: no edges from a token to itself
        enumerate(row)] -> enumerate(row) if i != j]
        A token may look at itself. Keep such edges.
    strictly_above: edges equal to the threshold left out
        >= threshold -> > threshold
        At least the threshold: does that include equality?
    lightest_first: lightest first
        -edge[2] -> edge[2]
        In which direction does sorting go by default?
    unsorted: in reading order
        sorted(edges, key=lambda edge: -edge[2]) -> edges
        The heaviest edge should come first.
    sorted_as_tuples: sorted by the words, from the end of the alphabet
        key=lambda edge: -edge[2] -> reverse=True
        What does Python compare first when it sorts tuples? What should it compare?
    positions_for_tokens: positions instead of tokens
        (tokens[i], tokens[j], weight) -> (i, j, weight)
        The list should hold the words, not their places.
    tensors_for_floats: tensors instead of Python floats
        weight) for -> weights[i, j]) for
        A tensor of one element is no Python float yet.
    rounded: rounded weights
        sorted(edges, key=lambda edge: -edge[2])
        -> [(q, k, round(w, 2)) for q, k, w in sorted(edges, key=lambda edge: -edge[2])]
        Return the weights as they are; rounding is for printing.
    ties_by_alphabet: ties in alphabetical order
        edge: -edge[2] -> edge: (-edge[2], edge[0], edge[1])
        Equal weights go by position. Are strings part of your sorting key?
    ties_by_alphabet_backwards: ties from the end of the alphabet
        edge: -edge[2] -> edge: (edge[2], edge[0], edge[1]), reverse=True
        Equal weights go by position. What else does your sorting compare, and in which direction?
    ties_by_key_first: ties by the key's position first
        (tokens[i], tokens[j], weight) for j, weight in enumerate(row)
        -> (tokens[j], tokens[i], float(weights[j, i])) for j in range(len(tokens))
        For equal weights the query's position comes first.
    ties_backwards: ties from the end
        sorted(edges, key=lambda edge: -edge[2]) -> sorted(edges, key=lambda edge: edge[2])[::-1]
        Reversing the whole order reverses the ties as well.
    repeated_words_merged: one edge for each pair of words
        return sorted(edges, -> edges = [(*pair, w) for pair, w in {edge[:2]: edge[2] for edge in edges}.items()]
        |    return sorted(edges,
        A dict holds one value for a pair of words, but a word may occur twice.
    first_place_of_a_word: every word taken at its first place
        tokens[j], weight) -> tokens[j], float(weights[tokens.index(tokens[i]), tokens.index(tokens[j])]))
        Looking a word up gives its first place only. Count positions instead.
    zeros_left_out: edges of weight zero left out
        >= threshold -> >= threshold and edge[2] > 0
        A threshold of 0 lets a weight of 0 in.
    best_key_only: one edge for each query
        enumerate(row)] -> enumerate(row) if j == row.index(max(row))]
        A query may have several edges that reach the threshold.
    one_direction_only: only edges to later tokens
        enumerate(row)] -> enumerate(row) if i <= j]
        An edge may go backwards in the sentence. Where does your inner loop start?
"""),
    Exercise("fixed_self_scores", cases_fixed_self_scores, axes=("query", "key")).with_mistakes(f"""
    published_version: the published version
        K.transpose(-2, -1) -> {RESHAPED}
        Follow one key through the suspicious line. Do its numbers stay together?
    queries_twice: the queries' weights used twice
        x @ W_k.T -> x @ W_q.T
        Your table is symmetric. Where do the keys' weights come in?
    keys_twice: the keys' weights used twice
        x @ W_q.T -> x @ W_k.T
        Your table is symmetric. Where do the queries' weights come in?
    no_weights: tokens compared with no weights
        Q @ K.transpose(-2, -1) -> x @ x.transpose(-2, -1)
        Neither of the two matrices is used.
    keys_and_queries_swapped: keys and queries swapped
        Q @ K.transpose -> K @ Q.transpose
        Rows belong to queries.
    first_two_axes: the first two dimensions swapped
        transpose(-2, -1) -> transpose(0, 1)
        Right for one sentence. Which dimensions are the first two in a batch?
    all_axes_reversed: all dimensions reversed
        K.transpose(-2, -1) -> K.permute(*range(K.dim() - 1, -1, -1))
        Right for one sentence. What happens to the batch when every dimension is turned around?
    only_for_batches: made for a batch only
        transpose(-2, -1) -> transpose(1, 2)
        Without a batch there is no third dimension. Count the dimensions from the end.
    reshaped_weights: the weights reshaped
        W_q.T -> W_q.reshape(W_q.shape[1], -1)
        W_k.T -> W_k.reshape(W_k.shape[1], -1)
        The suspicious line was further down; the projections were right.
    scaled: divided by the root of the width
        K.transpose(-2, -1) -> K.transpose(-2, -1) / W_q.shape[0] ** 0.5
        Only the bug is to be mended; scaling is the next lesson.
"""),
]

quizzes = listed_quizzes("""
    quiz_1: c
        a: (6, 16) times (24, 16): 16 does not meet 24, so this raises an error. W is stored as (out, in).
        b: (24, 16) times (6, 16): 16 does not meet 6. The tokens would have to stand in columns first.
        c: The third notation, with tokens as columns, turned back at the end: (24, 16) times (16, 6) is (24, 6), and
           its transpose (6, 24). It is the same map as the course's.
        d: A square W would hide the question: no error, but the wrong map. The widths of queries and tokens may
           differ, and here they do.
    quiz_2: b
        a: A score is made of two vectors only, and in the first layer both are rows of the embedding table. Context
           comes in by competition, and in higher layers by blended vectors.
        b: Neither jane's query nor the key of visits knows the third word. But shares are made from all scores of the
           row, so another third word may take more or less of them.
        c: The score stays, yes. But a share depends on all scores of the row, and one of them has changed.
    quiz_3: a
        a: A product through a width of 64 has at most that rank. So many independent patterns one head can hold,
           however many words there are.
        b: Its size is 512 by 512, but it is a product through a width of 64, and a product's rank is at most the
           smallest width on the way.
        c: 8 is 512 / 64, the number of heads that share the width. It limits no single head's rank.
""")
