"""Answer key of lesson 13: loading a published network, its heads, and vectors of sentences."""

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, Case, Exercise, listed_quizzes

BATCH_OF_ONE, ONE_TOKEN = "a batch of one", "a single token"
VIEW = "tensors that lie in memory in another order"

SQUARE = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
NORMS = ("attention.output.LayerNorm", "output.LayerNorm")


def bert_state(draw, layers, D, F, dtype=torch.float32, others=True, shuffled=False):
    state = {}
    if others:
        state["embeddings.word_embeddings.weight"] = draw.normal(7, D, dtype=dtype)
        state["embeddings.LayerNorm.weight"] = draw.normal(D, dtype=dtype)
    for i in range(layers):
        shapes = {part: (D, D) for part in SQUARE}
        shapes |= {"intermediate.dense": (F, D), "output.dense": (D, F)} | {part: (D,) for part in NORMS}
        for part, shape in shapes.items():
            state[f"encoder.layer.{i}.{part}.weight"] = draw.normal(*shape, dtype=dtype)
            state[f"encoder.layer.{i}.{part}.bias"] = draw.normal(shape[0], dtype=dtype)
    if others:
        state["pooler.dense.weight"] = draw.normal(D, D, dtype=dtype)
        state["pooler.dense.bias"] = draw.normal(D, dtype=dtype)
    names = draw.sample(sorted(state), len(state)) if shuffled else list(state)
    return {name: state[name] for name in names}


def cases_rename_weights(draw):
    def case(layers, *sizes, note=None, part="values", **options):
        state = bert_state(draw, layers, *sizes, **options)
        return Case(
            (state,),
            part=part,
            view="entries_of_blocks",
            note=note or f"a network of {layers} layers, its embeddings and its pooler",
        )

    return [
        case(2, 3, 5),
        case(3, 4, 6, shuffled=True, note="a network of 3 layers, its names in any order"),
        case(1, 3, 7, others=False, note="one layer, no embeddings, no pooler"),
        case(13, 2, 3, part="more than twelve layers"),
        case(2, 3, 5, dtype=torch.float64, part=DTYPE),
    ]


rename_weights = Exercise("rename_weights", cases_rename_weights).with_mistakes("""
    queries_and_keys_exchanged: queries and keys are exchanged
        "attention.self.query": "attention.W_q" -> "attention.self.query": "attention.W_k"
        "attention.self.key": "attention.W_k" -> "attention.self.key": "attention.W_q"
        Which of the two belongs to the token that attends?
    norms_exchanged: the two norms are exchanged
        "attention.output.LayerNorm": "norm1" -> "attention.output.LayerNorm": "norm2"
        "output.LayerNorm": "norm2", -> "output.LayerNorm": "norm1",
        Which LayerNorm follows the attention?
    up_and_down_exchanged: the two layers of the feed-forward network are exchanged
        "intermediate.dense": "feed_forward.up" -> "intermediate.dense": "feed_forward.down"
        "output.dense": "feed_forward.down", -> "output.dense": "feed_forward.up",
        The intermediate layer is the wide one. Which of your two layers makes the vector wider?
    counted_from_one: layers are counted from 1
        mine[f"blocks.{i}. -> mine[f"blocks.{int(i) + 1}.
        Both naming schemes count layers from 0.
    one_digit: only one digit of the layer's number was read
        mine[f"blocks.{i}. -> mine[f"blocks.{i[0]}.
        What does your code make of layer 10?
    transposed: the matrices were transposed
        ] = tensor -> ] = tensor.t()
        Both nn.Linear and BERT's file store a weight as (out, in), so don't transpose it.
    biases_forgotten: the biases are missing
        name.startswith("encoder.layer.") -> name.startswith("encoder.layer.") and name.endswith("weight")
        Print the names of your result. Which kinds of tensors are missing?
    joined_names_cut: attention.output was taken for output
        "attention.W_o" -> "attention.feed_forward.down"
        "attention.output.LayerNorm": "norm1" -> "attention.output.LayerNorm": "attention.norm2"
        Two of BERT's names end with other names of the table. Which have to be replaced first?
""")


def embedding_weights(draw, V, D, max_len, dtype=torch.float32, scale=0.05):
    def table(*shape):
        return draw.normal(*shape, dtype=dtype, scale=scale)

    return {
        "embeddings.word_embeddings.weight": table(V, D),
        "embeddings.position_embeddings.weight": table(max_len, D),
        "embeddings.token_type_embeddings.weight": table(2, D),
        "embeddings.LayerNorm.weight": draw.uniform(D, low=0.5, high=1.5, dtype=dtype),
        "embeddings.LayerNorm.bias": draw.normal(D, dtype=dtype),
    }


def cases_bert_embeddings(draw):
    def case(B, T, V=13, D=6, max_len=9, dtype=torch.float32, scale=0.05, **options):
        weights = embedding_weights(draw, V, D, max_len, dtype, scale)
        return Case((draw.integers(0, V, (B, T)), weights), **{"tolerance": tolerance(dtype)} | options)

    float64 = torch.float64
    return [
        case(3, 5),
        case(2, 7, scale=1.0, note="ids of shape (2, 7), long vectors"),
        case(3, 5, dtype=float64, part=DTYPE),
        case(2, 5, dtype=float64, scale=0.5, part=GRADIENT, gradient=True),
        case(1, 5, part=BATCH_OF_ONE),
        case(3, 1, part=ONE_TOKEN),
        case(2, 40, max_len=40, part="as many tokens as positions"),
        case(2, 5, scale=1e-5, dtype=float64, part="short vectors", tolerance=1e-6),
    ]


def tolerance(dtype):
    return 2e-5 if dtype == torch.float32 else None


bert_embeddings = Exercise("bert_embeddings", cases_bert_embeddings, axes=("token", "channel")).with_mistakes("""
    no_positions: the position vectors are missing
        words + positions + types -> words + types
        Two equal words at different positions get the same vector in your answer. Which table depends on the position?
    no_types: the type vector is missing
        words + positions + types -> words + positions
        The formula has three terms, and none of them is zero. Which of the three tables do you never use?
    not_normalized: the norm is missing
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) -> return x
        The formula has one more step after the sum.
    default_eps: the norm uses its default eps, 0.00001
        beta, 1e-12) -> beta, 1e-5)
        In the real file the vectors are short before the norm. Which ε does BERT use?
    plain_norm: the norm is used without its weight and bias
        F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) -> F.layer_norm(x, gamma.shape, None, None, 1e-12)
        The file has two more vectors for the norm.
    scaled_words: the words were multiplied by the square root of the width
        words + positions + types -> words * words.shape[-1] ** 0.5 + positions + types
        The Transformer of 2017 does that to its embeddings. Does the formula here?
    each_normalized: each of the three tables was normalized, not their sum
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> return sum(F.layer_norm(part, gamma.shape, gamma, beta, 1e-12) for part in (words, positions, types))
        The formula has a single norm. Does it come before or after the sum?
    positions_from_one: positions counted from 1
        [: ids.shape[1]] -> [1 : ids.shape[1] + 1]
        The first token has position 0.
    positions_of_ids: the positions were looked up by the ids of the tokens
        [: ids.shape[1]] -> [ids % len(weights["embeddings.position_embeddings.weight"])]
        A position says where in the sentence a token is, not which token it is.
    positions_of_sentences: each sentence has one position for all its tokens
        [: ids.shape[1]] -> [: len(ids)][:, None]
        A position counts the tokens within a sentence. Which dimension of ids is that?
    variance_by_one_less: the variance was divided by D − 1
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-12).sqrt() * gamma + beta
        A layer norm takes the mean of the squares, as in lesson 9. By what does torch's var divide by default?
    words_alone_normalized: the words are normalized before the positions and the type are added
        x = words + positions + types -> x = words
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) + positions + types
        What is inside the parentheses of LN in the formula?
""")


def cases_strongest_head(draw):
    def case(L, H, T, same=False, dtype=torch.float32, **options):
        attention = torch.softmax(draw.normal(L, H, T, T, dtype=dtype) * 2, dim=-1)
        query, key = draw.sample(range(T), 2) if T > 1 else (0, 0)
        return Case((attention, query, query if same else key), **options)

    def second_choice():
        """The weight is the largest of all heads but only second in its row; in other heads it leads its row."""
        attention = torch.full((2, 3, 4, 4), 0.25)
        query, key, other = draw.sample(range(4), 3)
        attention[:, :, query], attention[:, :, query, key] = 0.2, 0.4
        attention[0, 1, query] = 0.025
        attention[0, 1, query, key], attention[0, 1, query, other] = 0.45, 0.5
        return Case((attention, query, key), note="a head with its largest weight on another word")

    return [
        *(case(3, 5, 4) for _ in range(4)),
        second_choice(),
        case(6, 12, 3, note="six layers of twelve heads"),
        case(4, 2, 5, note="more layers than heads"),
        case(3, 5, 4, same=True, part="a word that attends to itself"),
        case(1, 4, 3, part="one layer"),
        case(4, 1, 3, part="one head"),
        case(3, 5, 4, part=VIEW, via="on_views", note="a view of a tensor with heads before layers"),
        case(3, 5, 4, dtype=torch.float64, part=DTYPE),
    ]


strongest_head = Exercise("strongest_head", cases_strongest_head).with_mistakes("""
    query_and_key_exchanged: query and key are exchanged
        attention[:, :, query, key] -> attention[:, :, key, query]
        Rows are queries, columns are keys. Which axis is which?
    layer_and_head_exchanged: head and layer are exchanged in the result
        return layer, head, -> return head, layer,
        In which order does the text list them?
    counted_from_one: layers and heads counted from 1
        return layer, head, -> return layer + 1, head + 1,
        The lesson counts from 0.
    largest_of_all: the largest weight anywhere instead of the one from this query to this key
        table = attention[:, :, query, key] -> table = attention.amax(dim=(2, 3))
        Only the weights from this query to this key count. Select them first.
    best_layer_first: first the layer with the best mean, then its best head
        layer, head = divmod(table.argmax().item(), table.shape[1])
        -> layer = table.mean(dim=1).argmax().item(); head = table[layer].argmax().item()
        The best single head may be in a layer that is poor on average.
    each_axis_by_itself: the best layer and the best head were searched separately
        divmod(table.argmax().item(), table.shape[1]) -> (table.argmax(0)[0].item(), table.argmax(1)[0].item())
        The largest entry of a table need not be in the first row or in the first column.
    counted_in_layers: the index in the table was divided by the number of layers
        table.shape[1]) -> table.shape[0])
        How many entries are in one row of the table?
    sharpest_row: the head with the largest weight from this query to any key
        table = attention[:, :, query, key] -> table = attention[:, :, query].amax(dim=-1)
        Two positions are given. Where do you use the second one?
    flat_index: the index in the flattened table returned as the head
        return layer, head, table[layer, head] -> return layer, table.argmax().item(), table[layer, head]
        How many heads does a layer have? argmax without a dimension counts through the whole table.
""")


def cases_mean_pool(draw):
    def case(B, T, D=6, dtype=torch.float32, mask=None, **options):
        x = draw.normal(B, T, D, dtype=dtype) + draw.normal(B, 1, D, dtype=dtype)
        return Case((x, draw.mask(B, T) if mask is None else mask), **options)

    def padded(*lengths, T):
        return torch.arange(T) < torch.tensor(lengths)[:, None]

    float64, empty = torch.float64, draw.mask(4, 5)
    empty[draw.integer(0, 4)] = False
    first = case(3, 5, mask=padded(5, 2, 3, T=5), note="sentences of 5, 2 and 3 tokens")
    first.args[0][0, draw.integer(0, 5)] = 0.0  # a zero vector still counts as a token
    return [
        first,
        case(2, 7, 4, note="kept tokens anywhere"),
        case(3, 5, mask=padded(1, 4, 5, T=5), dtype=float64, part=DTYPE),
        case(3, 5, mask=padded(5, 1, 3, T=5), dtype=float64, part=GRADIENT, gradient=True),
        case(1, 5, part=BATCH_OF_ONE),
        case(3, 1, mask=padded(1, 1, 1, T=1), part=ONE_TOKEN),
        case(2, 5, mask=padded(5, 5, T=5), part="nothing padded"),
        case(4, 4, 1, mask=padded(4, 2, 1, 3, T=4), part="as many sentences as tokens, and one channel"),
        case(3, 5, mask=padded(5, 2, 3, T=5), part=VIEW, via="on_views", note="a view of x, and one of the mask"),
        case(4, 5, mask=empty, part="a row in which nothing is kept"),
        case(4, 5, mask=empty, dtype=float64, part="a row in which nothing is kept", gradient=True),
    ]


mean_pool = Exercise("mean_pool", cases_mean_pool, axes=("sentence", "channel")).with_mistakes("""
    padding_averaged: padding was averaged too
        return (x * expanded).sum(dim=1) / counts -> return x.mean(dim=1)
        Your answer doesn't use the mask. Which rows should count?
    divided_by_length: divided by T, padding included
        counts = expanded.sum(dim=1).clamp(min=1) -> counts = x.shape[1]
        The sum is right. How many rows does it contain?
    summed: a sum instead of a mean
        return (x * expanded).sum(dim=1) / counts -> return (x * expanded).sum(dim=1)
        In your answer, longer sentences get longer vectors. What is missing after the sum?
    empty_is_nan: 0 is divided by 0 where nothing is kept
        expanded.sum(dim=1).clamp(min=1) -> expanded.sum(dim=1)
        A sentence without tokens should give zeros. By what do you divide there?
    nan_taken_out: NaN is replaced after the division, but its gradient is still NaN
        return (x * expanded).sum(dim=1) / counts -> return ((x * expanded).sum(dim=1) / counts).nan_to_num(0.0)
        expanded.sum(dim=1).clamp(min=1) -> expanded.sum(dim=1)
        The gradient goes back through the division. By what do you divide where nothing is kept?
    mask_reversed: padding was kept and the tokens left out
        mask.unsqueeze(-1).to(x.dtype) -> (~mask).unsqueeze(-1).to(x.dtype)
        In this mask, True means that a token is kept.
    first_token: the first token's vector
        return (x * expanded).sum(dim=1) / counts -> return x[:, 0] + 0 * counts
        This is another kind of pooling, BERT's own. This network was trained with the mean of all tokens.
    normalized: the vectors were scaled to length 1
        return (x * expanded).sum(dim=1) / counts
        -> return torch.nn.functional.normalize((x * expanded).sum(dim=1) / counts, dim=-1)
        Many libraries do that afterwards. The exercise asks for the mean itself.
    padding_in_the_sum: padding is included in the sum but not in the count
        (x * expanded).sum(dim=1) -> x.sum(dim=1)
        The count is right. Which rows did you add?
    epsilon_added: a small number was added to the count
        expanded.sum(dim=1).clamp(min=1) -> (expanded.sum(dim=1) + 1e-6)
        If this is meant to avoid a division by 0, it also changes the other rows.
    one_mean_for_all: one mean for the whole batch
        return (x * expanded).sum(dim=1) / counts -> return x[mask].mean(dim=0).expand(len(x), -1)
        Each sentence has a vector of its own. What does x[mask] do with the dimension of the sentences?
    first_ones_kept: the first rows of each sentence, as many as the mask keeps
        mask.unsqueeze(-1) -> (torch.arange(x.shape[1]) < mask.sum(-1, keepdim=True)).unsqueeze(-1)
        Real tokens may be at any position. Which rows does the mask name?
""")


def cases_search(draw):
    def case(N, k, D=5, dtype=torch.float32, spread=True, values=None, zero=None, **options):
        keys = draw.normal(N, D, dtype=dtype)
        if spread:
            keys = keys * draw.uniform(N, 1, low=0.2, high=4.0, dtype=dtype)
        query = draw.normal(D, dtype=dtype)
        if zero is not None:  # a zero key, ranked behind `zero` keys with a positive score and before all others
            signs = torch.tensor([1.0] * zero + [-1.0] * (N - zero), dtype=dtype)
            keys = (keys * ((keys @ query).sign() * signs)[:, None])[draw.sample(range(N), N)]
            negative = (keys @ query < 0).nonzero().flatten().tolist()
            keys[draw.sample(negative, 1)[0]] = 0
        values = values or [f"{draw.word()} {i}" for i in range(N)]
        return Case((query, keys, values, k), **options)

    def lengths(small, large):
        keys = draw.normal(6, 4, dtype=torch.float64)
        sizes = torch.tensor([small, large, 1.0, small, 1.0, large], dtype=torch.float64)
        query = draw.normal(4, dtype=torch.float64)
        keys[0] = query  # a short key in the direction of the query, with cosine 1
        keys = keys / keys.norm(dim=-1, keepdim=True) * sizes[:, None]
        return query / query.norm() * small, keys, [draw.word() for _ in range(6)], 6

    return [
        case(7, 3),
        case(6, 6, note="all of six, in order"),
        case(5, 1, note="only the best of five"),
        case(7, 4, dtype=torch.float64, part=DTYPE),
        case(5, 5, zero=2, part="a key of zeros", note="a key of zeros behind two good ones and before two bad ones"),
        case(6, 2, zero=0, part="a key of zeros", note="a key of zeros, and all others point away"),
        case(1, 1, part="one key"),
        case(4, 2, values=[(draw.word(), i) for i in range(4)], part="values of any kind"),
        case(6, 6, values=["a walk", "a talk"] * 3, part="values that come twice"),
        # The tolerance allows a guard of 1e-8 on each length, but not on their product.
        Case(lengths(2e-4, 1e3), part="short and long keys", tolerance=8e-5),
    ]


search = Exercise("search", cases_search).with_mistakes("""
    dot_products: dot products instead of cosines
        lengths = keys.norm(dim=-1) * query.norm() -> lengths = torch.ones_like(keys[:, 0])
        In your answer, a key that is ten times as long has ten times the score. By what does a cosine divide?
    query_not_normalized: divided by the keys' lengths only
        keys.norm(dim=-1) * query.norm() -> keys.norm(dim=-1)
        The order is right, but the scores are not. Which length is missing in the denominator?
    keys_not_normalized: divided by the query's length only
        keys.norm(dim=-1) * query.norm() -> query.norm().expand(len(keys))
        In your answer, long keys win too often. Which lengths are missing in the denominator?
    zero_is_nan: NaN for a key of zeros
        lengths.masked_fill(lengths == 0, 1.0) -> lengths
        That is 0 divided by 0. What should the score of a key of zeros be?
    worst_first: the values with the smallest cosines
        scores.topk(k) -> scores.topk(k, largest=False)
        A large cosine is a good match. Which end of the order do you return?
    ascending: the right values, but the best comes last
        for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
        -> for i, score in reversed(list(zip(best.indices.tolist(), best.values.tolist(), strict=True)))]
        The best match comes first in the list.
    indices: indices instead of values
        [(values[i], score) -> [(i, score)
        The caller wants to read titles, not positions.
    absolute: the sign of the score was dropped
        best = scores.topk(k) -> best = scores.abs().topk(k)
        A key that points in the opposite direction is a bad answer.
    distances: one minus the cosine
        [(values[i], score) -> [(values[i], 1 - score)
        That is a distance, which is 0 for equal directions. The cosine itself is the score.
    softmaxed: weights instead of cosines
        scores.topk(k) -> torch.softmax(scores, dim=0).topk(k)
        The exercise asks for the cosines themselves. What does a softmax of two equal cosines give?
    epsilon_on_the_product: a small number was added to the product of the lengths
        lengths.masked_fill(lengths == 0, 1.0) -> (lengths + 1e-8)
        The product of two lengths of 0.0002 is 4e-8. How large is your ε compared with it?
    score_first: value and score are exchanged in each pair
        (values[i], score) -> (score, values[i])
        In which order does the text list value and score?
""")


def cases_fixed_sentence_vectors(draw):
    def case(*lengths, T=None, D=5, pad_id=0, dtype=torch.float32, **options):
        T = T or max(lengths)
        ids = draw.integers(1, 9, (len(lengths), T))
        ids = torch.where(ids == pad_id, 0, ids)  # if pad_id is not 0, 0 is an ordinary word
        ids = torch.where(torch.arange(T) < torch.tensor(lengths)[:, None], ids, pad_id)
        return Case((draw.normal(9, D, dtype=dtype), ids, pad_id), via="with_a_table", **options)

    return [
        case(5, 2, 3, note="sentences of 5, 2 and 3 tokens"),
        case(1, 5, 4, note="sentences of 1, 5 and 4 tokens"),
        case(4, 2, 5, pad_id=7, part="another pad_id", note="a pad_id of 7, while 0 is a word"),
        case(4, T=6, part=BATCH_OF_ONE, note="one sentence of 4 tokens, padded to 6"),
        case(3, 3, T=5, part="every sentence padded equally", note="two sentences of 3 tokens, padded to 5"),
        case(4, 4, 4, part="nothing padded", note="three sentences of 4 tokens"),
        case(5, 2, 3, dtype=torch.float64, part=DTYPE, note="a network of float64 numbers"),
        case(
            5,
            2,
            3,
            dtype=torch.float64,
            part=GRADIENT,
            gradient=True,
            note="a network that learns the vectors of its words",
        ),
    ]


fixed_sentence_vectors = Exercise(
    "fixed_sentence_vectors", cases_fixed_sentence_vectors, axes=("sentence", "channel")
).with_mistakes("""
    published: the buggy version
        encode(ids, mask[:, None, None, :]) -> encode(ids)
        mean_pool(x, mask) -> x.mean(dim=1)
        Take a batch of a short and a long sentence, and the short one alone. What differs?
    pooled_over_padding: padding is still included in the mean
        mean_pool(x, mask) -> x.mean(dim=1)
        You mask padding in attention, but the mean needs the mask as well.
    words_see_padding: the words still attend to padding
        encode(ids, mask[:, None, None, :]) -> encode(ids)
        The mean is right, but the words still attend to padding. Which keys must have weight 0?
    sentences_as_queries: the mask's batch dimension is where the dimension of the queries belongs
        encode(ids, mask[:, None, None, :]) -> encode(ids, mask)
        The mask has to broadcast to (B, H, T, T), and dimensions are matched from the last one. With which one is your
        B matched?
    sentences_as_heads: the mask's batch dimension is where the dimension of the heads belongs
        encode(ids, mask[:, None, None, :]) -> encode(ids, mask[:, None])
        The mask has to broadcast to (B, H, T, T), and dimensions are matched from the last one. With which one is your
        B matched?
    pad_id_zero: padding is always the id 0
        ids != pad_id -> ids != 0
        Padding may have another id. Where does your code use pad_id?
    padding_for_words: the mask is True at padding and False at the words
        ids != pad_id -> ids == pad_id
        True means that a token may be attended to and is averaged. Which tokens should that be?
    mask_reversed: the mask for the network is inverted
        mask[:, None, None, :]) -> ~mask[:, None, None, :])
        In this course, True means that a key may be attended to.
    divided_by_length: divided by T, padding included
        mean_pool(x, mask) -> (x * mask.unsqueeze(-1)).mean(dim=1)
        The sum is right. How many rows does it contain?
    padding_in_the_sum: padding is included in the sum but not in the count
        mean_pool(x, mask) -> x.sum(dim=1) / mask.sum(dim=1, keepdim=True)
        The count is right. Which rows did you add?
    first_token: the first token's vector
        return mean_pool(x, mask) -> return x[:, 0]
        This is another kind of pooling, BERT's own. This network was trained with the mean of all tokens.
""")

exercises = [rename_weights, bert_embeddings, strongest_head, mean_pool, search, fixed_sentence_vectors]
quizzes = listed_quizzes("""
    quiz_1: c
        a: In all of them the verb is the next token, so a head that attends to the next token gets the same high mean. A
           hundred sentences of one form tell no more than one.
        b: That tells whether other heads do it as well, but nothing about what this head does.
        c: On these sentences the two explanations disagree, so one of them must fail. In this network the head attends
           to the next token, whether it is a verb or not.
    quiz_2: a
        a: What a token receives is weight times value. A row must sum to 1, so a head that finds nothing useful puts
           its attention on a token whose value is close to zero.
        b: A weight tells where a head attends. What it gets is weight times value, and in the head of the lesson the
           value of [CLS] was seven times shorter than those of the words.
        c: Well trained networks do it regularly. The weights of a row have to go somewhere.
""")
