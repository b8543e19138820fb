"""Answer key of lesson 13: loading a published network, its heads, and vectors of sentences."""

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, Case, Exercise, Stub, listed_quizzes

BATCH_OF_ONE, ONE_TOKEN = "a batch of one", "a single token"
VIEW = "tensors that lie in memory in another order"

# ---------------------------------------------------------------- rename_weights

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
    queries_and_keys_exchanged: queries and keys exchanged
        "attention.self.query": "attention.W_q" -> "attention.self.query": "attention.W_k"
        "attention.self.key": "attention.W_k" -> "attention.self.key": "attention.W_q"
        Which of the two asks?
    keys_and_values_exchanged: keys and values exchanged
        "attention.self.key": "attention.W_k" -> "attention.self.key": "attention.W_v"
        "attention.self.value": "attention.W_v" -> "attention.self.value": "attention.W_k"
        All three projections have one shape, so nothing complains. Compare your table with the lesson's, row by row.
    norms_exchanged: the two norms exchanged
        "attention.output.LayerNorm": "norm1" -> "attention.output.LayerNorm": "norm2"
        "output.LayerNorm": "norm2", -> "output.LayerNorm": "norm1",
        Which LayerNorm follows the attention?
    up_and_down_exchanged: the feed-forward network's layers exchanged
        "intermediate.dense": "feed_forward.up" -> "intermediate.dense": "feed_forward.down"
        "output.dense": "feed_forward.down", -> "output.dense": "feed_forward.up",
        The intermediate layer is the wide one. Which of your two makes the vector wider?
    counted_from_one: layers counted from 1
        mine[f"blocks.{i}. -> mine[f"blocks.{int(i) + 1}.
        Both files count their layers in the same way.
    one_digit: only one digit of the layer's number was read
        mine[f"blocks.{i}. -> mine[f"blocks.{i[0]}.
        What becomes of layer 10 in yours?
    transposed: the matrices were transposed
        ] = tensor -> ] = tensor.t()
        Which axis of a weight does nn.Linear keep in front, and which one does BERT's file?
    biases_forgotten: the biases are missing
        name.startswith("encoder.layer.") -> name.startswith("encoder.layer.") and name.endswith("weight")
        Print the names of your result. Which kinds of tensors are missing?
    norms_forgotten: the norms are missing
        name.startswith("encoder.layer.") -> name.startswith("encoder.layer.") and "LayerNorm" not in name
        A block has two layers whose parameters are vectors.
    joined_name_cut: attention.output.dense was taken for output.dense
        "attention.W_o" -> "attention.feed_forward.down"
        One of BERT's names ends with another of them. Which has to be replaced first?
    first_layer_everywhere: every layer got the same parameters
        ] = tensor -> ] = state_dict[name.replace(f'layer.{i}.', 'layer.0.')]
        Is there a 0 in your code where the layer's number belongs?
    joined_norm_cut: attention.output.LayerNorm was taken for output.LayerNorm
        "attention.output.LayerNorm": "norm1" -> "attention.output.LayerNorm": "attention.norm2"
        One of BERT's names ends with another of them. Which has to be replaced first?
    joined_names_cut: attention.output was taken for output
        "attention.W_o" -> "attention.feed_forward.down"
        "attention.output.LayerNorm": "norm1" -> "attention.output.LayerNorm": "attention.norm2"
        Two of BERT's names end with other names of the table. Which have to be replaced first?
    attention_left_out: the projections' names lack the part that they belong to
        "attention.self.query": "attention.W_q" -> "attention.self.query": "W_q"
        "attention.self.key": "attention.W_k" -> "attention.self.key": "W_k"
        "attention.self.value": "attention.W_v" -> "attention.self.value": "W_v"
        "attention.W_o" -> "W_o"
        The block has an attention, and the attention has a W_q. Compare your names with the lesson's table.
    gamma_and_beta: the norms' numbers are called gamma and beta
        {kind}"] = tensor
        -> {({'weight': 'gamma', 'bias': 'beta'}[kind] if 'LayerNorm' in part else kind)}"] = tensor
        nn.LayerNorm calls its two vectors as every other layer does.
    first_layer_only: only the first layer
        name.startswith("encoder.layer.") -> name.startswith("encoder.layer.0.")
        How many layers does the file have?
    other_beginning: none of your names begins with `blocks.`
        mine[f"blocks.{i}. -> mine[f"encoder.blocks.{i}.
        Compare the first name of your result with the first one of the lesson's block. From where on do they differ?
    self_kept: `self` is still in the names of the projections
        "attention.self.query": "attention.W_q" -> "attention.self.query": "attention.self.W_q"
        "attention.self.key": "attention.W_k" -> "attention.self.key": "attention.self.W_k"
        "attention.self.value": "attention.W_v" -> "attention.self.value": "attention.self.W_v"
        How many words are between the layer's number and W_q in the lesson's table, and how many in yours?
    feed_forward_left_out: the names of up and down lack the part that they belong to
        "intermediate.dense": "feed_forward.up" -> "intermediate.dense": "up"
        "output.dense": "feed_forward.down", -> "output.dense": "down",
        The block has a feed-forward network, and that has an up. Compare your names with the lesson's table.
    kind_left_out: the names do not say whether it is a weight or a bias
        .{kind}"] = tensor -> "] = tensor
        A layer has two tensors. What becomes of the first one in yours when the second comes?
    last_layer_missing: the last layer is missing
        name.startswith("encoder.layer.")
        -> name.startswith("encoder.layer.") and name.replace(
        |            f'layer.{name.split(".")[2]}.', f'layer.{int(name.split(".")[2]) + 1}.') in state_dict
        Layers are counted from 0, and the end of a range is not included. Which is your last one?
    joined_written_over: attention.output was taken for output, so that two tensors came under one name
        "attention.W_o" -> "feed_forward.down"
        "attention.output.LayerNorm": "norm1" -> "attention.output.LayerNorm": "norm2"
        One of BERT's names ends with another of them. Which has to be asked for first?
    weights_for_both: weights and biases come under one name
        .{kind}"] = tensor -> .weight"] = tensor
        A layer has two tensors. What becomes of the first one in yours when the second comes?
    six_layers: no layer behind the first six
        name.startswith("encoder.layer.") -> name.startswith("encoder.layer.") and int(name.split(".")[2]) < 6
        Who says how many layers there are, your code or the names of the file?
    layer_kept: `layer` is still in the names
        mine[f"blocks.{i}. -> mine[f"blocks.layer.{i}.
        What is between `blocks` and the layer's number in the lesson's names, and what in yours?
""")

# ---------------------------------------------------------------- bert_embeddings


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
    no_positions: no positions
        words + positions + types -> words + types
        Two equal words at different positions get the same vector in your answer. Which table depends on the position?
    no_types: no type
        words + positions + types -> words + positions
        Row 0 of the type table is added for every token. It is not zero.
    other_type: the type's row 1
        "embeddings.token_type_embeddings.weight"][0] -> "embeddings.token_type_embeddings.weight"][1]
        Row 1 belongs to the second sentence of a pair. Have we got one?
    types_summed: both rows of types were added
        "embeddings.token_type_embeddings.weight"][0] -> "embeddings.token_type_embeddings.weight"].sum(0)
        A token has one type, not two.
    not_normalized: no norm
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) -> return x
        The formula has one more step after the sum.
    default_eps: the norm's default eps, 0.00001
        beta, 1e-12) -> beta, 1e-5)
        In the real file the vectors are short before the norm. Which ε does BERT use?
    plain_norm: the norm without its weight and bias
        F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) -> F.layer_norm(x, gamma.shape, None, None, 1e-12)
        The file has two more vectors for the norm.
    norm_without_bias: the norm's bias is not used
        gamma, beta, 1e-12) -> gamma, None, 1e-12)
        What does LN of a row of equal numbers give, by the formula?
    places_from_the_end: the last rows of the position table
        [: ids.shape[1]] -> [len(weights['embeddings.position_embeddings.weight']) - ids.shape[1] :]
        The first token has position 0.
    scaled_words: the words were multiplied by the square root of the width
        words + positions + types -> words * words.shape[-1] ** 0.5 + positions + types
        The Transformer of 2017 does that to its embeddings. Does the formula here?
    each_normalized: each of the three tables was normalized, not their sum
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> return sum(F.layer_norm(part, gamma.shape, gamma, beta, 1e-12) for part in (words, positions, types))
        First the sum, then the norm. How many norms does the formula have?
    words_normalized: only the words were normalized
        x = words + positions + types -> x = words
        F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) + positions + types
        First the sum, then the norm.
    places_from_one: positions counted from 1
        [: ids.shape[1]] -> [1 : ids.shape[1] + 1]
        The first token has position 0.
    places_from_two: positions counted from 2
        [: ids.shape[1]] -> [2 : ids.shape[1] + 2]
        Another network, RoBERTa, counts this way. Here the first token has position 0.
    weight_and_bias_exchanged: the norm's weight and bias are exchanged
        gamma, beta, 1e-12) -> beta, gamma, 1e-12)
        Which of the two multiplies?
    places_of_sentences: one position for each sentence
        [: ids.shape[1]] -> [: len(ids)][:, None]
        A position counts the tokens within a sentence. Which dimension of ids is that?
    variance_by_one_less: the variance was divided by D − 1
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-12).sqrt() * gamma + beta
        Lesson 9: a layer norm takes the mean of the squares. What does torch's var do unless you tell it?
    deviation_by_one_less: the variance was divided by D − 1
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-12) * gamma + beta
        Lesson 9: a layer norm takes the mean of the squares. What does torch's std do unless you tell it?
    no_eps: ε has no effect: it is left out, or it is added outside the square root
        beta, 1e-12) -> beta, 0.0)
        Two terms are added under the square root of the formula. Which ones?
    eps_EPS for EPS in 1e-6, 1e-8: the norm's eps is EPS
        beta, 1e-12) -> beta, EPS)
        In the real file the vectors are short before the norm. Which ε does BERT use?
    types_averaged: the mean of both types was added
        "embeddings.token_type_embeddings.weight"][0] -> "embeddings.token_type_embeddings.weight"].mean(0)
        All our tokens belong to a first sentence. How many rows of the table speak of those?
    first_place_everywhere: every token got the vector of position 0
        [: ids.shape[1]] -> [0]
        Each token of a sentence has its own position. How many rows of the position table do you read?
    root_forgotten: divided by the variance instead of its square root
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> return (x - x.mean(-1, keepdim=True)) / (x.var(-1, False, keepdim=True) + 1e-12) * gamma + beta
        After a norm the entries of a vector have a size of about 1. Does a variance have the same unit as the entries?
    mean_not_taken_away: the mean was not taken away
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> return x / (x.square().mean(-1, keepdim=True) + 1e-12).sqrt() * gamma + beta
        What does a layer norm of lesson 9 do before it divides?
    norm_over_tokens: the norm runs over the tokens, not over the channels
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> calm = (x - x.mean(1, keepdim=True)) / (x.var(1, False, keepdim=True) + 1e-12).sqrt()
        |    return calm * gamma + beta
        Each token's vector is normalized by itself. Along which dimension does a vector lie?
    norm_without_weight: the norm's weight is not used
        gamma, beta, 1e-12) -> None, beta, 1e-12)
        The file has two more vectors for the norm. What does each of them do in the formula?
    places_by_word: the position table was read at the ids of the words
        [: ids.shape[1]] -> [ids]
        A position counts the tokens of a sentence, whichever words they are.
    places_one_on: positions counted from 1
        [: ids.shape[1]] -> [torch.arange(ids.shape[1]) + 1]
        The first token has position 0.
    norm_over_the_sentence: the norm runs over all entries of a sentence together
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        -> return F.layer_norm(x, x.shape[1:], None, None, 1e-12) * gamma + beta
        Each token's vector is normalized by itself. How many numbers go into one mean of yours?
""")

# ---------------------------------------------------------------- strongest_head


def cases_strongest_head(draw):
    def case(L, H, T, same=False, dtype=torch.float32, **options):
        attention = torch.softmax(draw.normal(L, H, T, T, dtype=dtype) * 2, dim=-1)
        query, key = draw.sample(range(T), 2) if T > 1 else (0, 0)
        return Case((attention, query, query if same else key), **options)

    def rival_margin():
        """The largest weight is second in its row; another head's smaller weight leads its own row by far."""
        attention = torch.softmax(draw.normal(2, 3, 5, 5) * 0.1, dim=-1)
        query, key, second, *_ = draw.sample(range(5), 5)
        attention[0, 1, query] = torch.tensor([0.02] * 5).index_fill(0, torch.tensor([key]), 0.45)
        attention[0, 1, query, second] = 0.49
        attention[1, 2, query] = torch.tensor([0.145] * 5).index_fill(0, torch.tensor([key]), 0.42)
        attention[0, 0, query] = torch.tensor([0.13 / 3] * 5).index_fill(0, torch.tensor([key]), 0.44)
        attention[0, 0, query, second] = 0.43
        return Case(
            (attention, query, key), note="the largest weight, second in its row, and another one that leads its own"
        )

    def rival_layer():
        """The best head stands in a layer that is poor on the whole, and a larger weight in another row."""
        attention = torch.softmax(draw.normal(3, 5, 4, 4), dim=-1)
        query, key, other = draw.sample(range(4), 3)

        def give(layer, head, row, weight):
            attention[layer, head, row] = (1 - weight) / 3
            attention[layer, head, row, key] = weight

        for layer, weight in enumerate((0.5, 0.1, 0.1)):
            for head in range(5):
                give(layer, head, query, weight + 0.01 * head)
        give(2, 4, query, 0.9)
        give(1, 3, other, 0.97)
        return Case((attention, query, key), note="a strong head in a weak layer")

    return [
        *(case(3, 5, 4) for _ in range(2)),
        rival_layer(),
        rival_margin(),
        case(6, 12, 3, note="six layers of twelve heads"),
        case(4, 2, 5, note="more layers than heads"),
        case(3, 5, 4, same=True, part="a word that attends to itself"),
        case(1, 4, 3, part="one layer"),
        case(4, 1, 3, part="one head"),
        case(3, 5, 4, part=VIEW, via="on_views", note="a view: heads stood before layers"),
        case(3, 5, 4, dtype=torch.float64, part=DTYPE),
    ]


strongest_head = Exercise("strongest_head", cases_strongest_head).with_mistakes("""
    query_and_key_exchanged: query and key exchanged
        attention[:, :, query, key] -> attention[:, :, key, query]
        Rows are queries, columns are keys. Which axis is which?
    layer_and_head_exchanged: head and layer exchanged in the result
        return layer, head, -> return head, layer,
        In which order does the exercise want them?
    divided_by_layers: the index was divided by the number of layers
        layer, head = divmod(table.argmax().item(), table.shape[1])
        -> layer, head = divmod(table.argmax().item(), table.shape[0])
        table[layer, head].item() -> table.max().item()
        argmax counts along the last axis first. How long is that axis?
    counted_from_one: layers and heads counted from 1
        return layer, head, -> return layer + 1, head + 1,
        The lesson counts from 0.
    largest_of_all: the largest weight anywhere, not the one from this query to this key
        table = attention[:, :, query, key] -> table = attention.amax(dim=(2, 3))
        First take out what belongs to the pair.
    smallest: the head with the smallest weight
        table.argmax() -> table.argmin()
        Most, not least.
    largest_margin: the head whose weight leads its row by most, not the one with the largest weight
        table = attention[:, :, query, key] -> row = attention[:, :, query]
        |    table = row[..., key] - row.index_fill(-1, torch.tensor([key]), 0).amax(-1)
        table[layer, head].item() -> attention[layer, head, query, key].item()
        The question is how much this head gives to this word, whatever it gives to others.
    first_choices_only: heads with a larger weight on another word were left out
        attention[:, :, query, key] -> attention[:, :, query, key] * (attention[:, :, query].argmax(-1) == key)
        The question is how much this head gives to this word, whatever it gives to others.
    best_layer_first: first the layer with the best mean, then its best head
        layer, head = divmod(table.argmax().item(), table.shape[1])
        -> layer = table.mean(dim=1).argmax().item(); head = table[layer].argmax().item()
        The best single head may be in a layer that is poor on average.
    whole_column: the mean over all queries
        attention[:, :, query, key] -> attention[:, :, :, key].mean(dim=2)
        Only one query counts here. Which one?
    each_axis_by_itself: layers and heads were searched each for itself
        divmod(table.argmax().item(), table.shape[1]) -> (table.argmax(0)[0].item(), table.argmax(1)[0].item())
        The largest entry of a table need not be in the first row or in the first column.
    twelve_heads: always twelve heads
        table.shape[1]) -> 12)
        table[layer, head].item() -> table.max().item()
        How many heads does this table have?
    counted_in_layers: the index in the table was divided by the number of layers
        table.shape[1]) -> table.shape[0])
        How many entries are in one row of the table?
    first_head_only: only head 0 of each layer
        attention[:, :, query, key] -> attention[:, :1, query, key]
        Which dimension holds the heads?
    last_layer_only: only the last layer
        divmod(table.argmax().item(), table.shape[1]) -> len(table) - 1, table[-1].argmax().item()
        Of how many layers do you have the weights?
    sharpest_row: the head with the largest weight from this query, on any key
        table = attention[:, :, query, key] -> table = attention[:, :, query].amax(dim=-1)
        Two positions are given. Where does the second one come in?
    sharpest_row_and_its_weight: the head with the largest weight from this query, on any key
        table = attention[:, :, query, key] -> table = attention[:, :, query].amax(dim=-1)
        table[layer, head].item() -> attention[layer, head, query, key].item()
        Two positions are given. Where does the second one come in?
    any_query: the largest weight on this key, from whatever query
        attention[:, :, query, key] -> attention[:, :, :, key].amax(dim=-1)
        Only one query counts here. Which one?
    head_of_the_largest_of_all: the head with the largest weight anywhere, whatever its query and key
        table = attention[:, :, query, key] -> table = attention.amax(dim=(2, 3))
        table[layer, head].item() -> attention[layer, head, query, key].item()
        First take out what belongs to the pair.
    last_head: always the last of all heads
        table.argmax().item() -> table.numel() - 1
        What has to be remembered of the best head so far, so that the next one can be compared with it?
""")

# ---------------------------------------------------------------- mean_pool


def cases_mean_pool(draw):
    def case(B, T, D=6, dtype=torch.float32, mask=None, **options):
        x = draw.normal(B, T, D, dtype=dtype) + draw.normal(B, 1, D, dtype=dtype)
        return Case((x, draw.mask(B, T) if mask is None else mask), **options)

    def padded(*lengths, T):
        return torch.arange(T) < torch.tensor(lengths)[:, None]

    float64, empty = torch.float64, draw.mask(4, 5)
    empty[draw.integer(0, 4)] = False
    first = case(3, 5, mask=padded(5, 2, 3, T=5), note="sentences of 5, 2 and 3 tokens")
    first.args[0][0, draw.integer(0, 5)] = 0.0  # a token is a token, whatever its vector
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
        The mask is not used. Whose rows should count?
    divided_by_length: divided by T, padding included
        counts = expanded.sum(dim=1).clamp(min=1) -> counts = x.shape[1]
        The sum is right. How many rows are in it?
    summed: a sum, not a mean
        return (x * expanded).sum(dim=1) / counts -> return (x * expanded).sum(dim=1)
        Longer sentences get longer vectors from yours.
    empty_is_nan: 0 divided by 0 where nothing is kept
        expanded.sum(dim=1).clamp(min=1) -> expanded.sum(dim=1)
        A row without tokens gives zeros. By what do you divide there?
    nan_taken_out: NaN is taken out behind the division, and its gradient is still NaN
        return (x * expanded).sum(dim=1) / counts -> return ((x * expanded).sum(dim=1) / counts).nan_to_num(0.0)
        expanded.sum(dim=1).clamp(min=1) -> expanded.sum(dim=1)
        A gradient goes back through the division. By what do you divide where nothing is kept?
    mask_reversed: padding was kept and the tokens left out
        mask.unsqueeze(-1).to(x.dtype) -> (~mask).unsqueeze(-1).to(x.dtype)
        True means kept.
    first_token: the first token's vector
        return (x * expanded).sum(dim=1) / counts -> return x[:, 0] + 0 * counts
        This is another kind of pooling, BERT's own. This network was trained with the mean.
    largest: the largest entry of each channel
        return (x * expanded).sum(dim=1) / counts
        -> return x.masked_fill(expanded == 0, -torch.inf).amax(dim=1).masked_fill(expanded.sum(dim=1) == 0, 0.0)
        Max pooling exists as well. Here the mean is wanted.
    one_more: divided by one more than the number of kept tokens
        expanded.sum(dim=1).clamp(min=1) -> (expanded.sum(dim=1) + 1)
        If this is meant to avoid a division by 0, it also changes the other rows.
    whole_batch: divided by the mean number of kept tokens in the batch
        expanded.sum(dim=1).clamp(min=1) -> expanded.sum(dim=1).mean().clamp(min=1)
        Each sentence has its own number of tokens.
    normalized: the vectors were brought to length 1
        return (x * expanded).sum(dim=1) / counts
        -> return torch.nn.functional.normalize((x * expanded).sum(dim=1) / counts, dim=-1)
        Many libraries do that afterwards. Here the mean itself is wanted.
    all_of_the_batch: divided by the number of kept tokens in the whole batch
        expanded.sum(dim=1).clamp(min=1) -> expanded.sum().clamp(min=1)
        Each sentence has its own number of tokens.
    longest_sentence: divided by the number of tokens in the longest sentence
        expanded.sum(dim=1).clamp(min=1) -> expanded.sum(dim=1).max().clamp(min=1)
        Each sentence has its own number of tokens.
    first_rows: the first rows instead of the kept ones
        (x * expanded).sum(dim=1)
        -> (x * (torch.arange(x.shape[1])[:, None] < expanded.sum(dim=1, keepdim=True))).sum(dim=1)
        The kept tokens may be at any position, which the mask tells.
    padding_in_the_sum: padding is in the sum, though not in the count
        (x * expanded).sum(dim=1) -> x.sum(dim=1)
        The count is right. Which rows did you add up?
    softmax_of_the_mask: the weights are a softmax of the mask
        return (x * expanded).sum(dim=1) / counts -> return (x * torch.softmax(expanded, dim=1)).sum(dim=1)
        A softmax also gives each 0 a positive weight. Which weight should padding have?
    added_EPS for EPS in 1e-6, 1e-5, 1e-4, 1e-3: a small number was added to the count
        expanded.sum(dim=1).clamp(min=1) -> (expanded.sum(dim=1) + EPS)
        If this is meant to avoid a division by 0, it also changes the other rows.
    mean_of_each_alone: 0 divided by 0 where nothing is kept
        return (x * expanded).sum(dim=1) / counts
        -> return torch.stack([row[kept].mean(dim=0) for row, kept in zip(x, mask, strict=True)])
        A row without tokens gives zeros. Of how many numbers does your code take the mean there?
    one_mean_for_all: one mean for the whole batch
        return (x * expanded).sum(dim=1) / counts -> return x[mask].mean(dim=0).expand(len(x), -1)
        Each sentence has a vector of its own. What is left of the sentences once the mask has picked its rows?
""")

# ---------------------------------------------------------------- search


def cases_search(draw):
    def case(N, k, D=5, dtype=torch.float32, spread=True, values=None, zero=None, **options):
        keys = draw.normal(N, D, dtype=dtype)
        if spread:
            keys = keys * draw.uniform(N, 1, low=0.2, high=4.0, dtype=dtype)
        query = draw.normal(D, dtype=dtype)
        if zero is not None:  # behind `zero` keys with a positive score, before all others
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
        keys[0] = query  # a short one that points where the query points scores 1
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
        # The tolerance leaves room for a guard of 1e-8 on each length, and none for one on their product.
        Case(lengths(2e-4, 1e3), part="short and long keys", tolerance=8e-5),
    ]


search = Exercise("search", cases_search).with_mistakes("""
    dot_products: dot products instead of cosines
        lengths = keys.norm(dim=-1) * query.norm() -> lengths = torch.ones_like(keys[:, 0])
        A key that is ten times as long scores ten times as much in yours.
    query_not_normalized: divided by the keys' lengths only
        keys.norm(dim=-1) * query.norm() -> keys.norm(dim=-1)
        The order is right and the scores are not. Whose length is missing?
    keys_not_normalized: divided by the query's length only
        keys.norm(dim=-1) * query.norm() -> query.norm().expand(len(keys))
        Long keys win too often in yours.
    zero_is_nan: NaN for a key of zeros
        lengths.masked_fill(lengths == 0, 1.0) -> lengths
        0 divided by 0. What should the score be?
    worst_first: the worst ones
        scores.topk(k) -> scores.topk(k, largest=False)
        Which end of the order is wanted?
    ascending: the right ones, the best of them last
        for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
        -> for i, score in reversed(list(zip(best.indices.tolist(), best.values.tolist(), strict=True)))]
        Best first.
    all_of_them: all values instead of k
        scores.topk(k) -> scores.topk(len(values))
        How many did the caller ask for?
    places: indices instead of values
        [(values[i], score) -> [(i, score)
        The caller wants to see titles.
    softmaxed: weights of a softmax instead of cosines
        best = scores.topk(k) -> best = torch.softmax(scores, dim=0).topk(k)
        That was the soft lookup of lesson 7. Here each score is independent of the others.
    absolute: the sign of the score was dropped
        best = scores.topk(k) -> best = scores.abs().topk(k)
        A key that points in the opposite direction is a bad answer.
    distances: one minus the cosine
        [(values[i], score) -> [(values[i], 1 - score)
        Near is high here: the cosine itself is the score.
    epsilon_on_the_product: a small number was added to the product of the lengths
        lengths.masked_fill(lengths == 0, 1.0) -> (lengths + 1e-8)
        The product of two lengths of 0.0002 is 4e-8. How large is your ε compared with it?
    length_of_all_keys: divided by the length of all keys together
        keys.norm(dim=-1) * query.norm() -> keys.norm() * query.norm().expand(len(keys))
        Each key has a length of its own.
    euclid: distances between the points instead of cosines
        scores = keys @ query / lengths.masked_fill(lengths == 0, 1.0) -> scores = -(keys - query).norm(dim=-1)
        A cosine is about directions. Does the length of a key play a part in yours?
    nearest_points: distances between the points instead of cosines
        scores = keys @ query / lengths.masked_fill(lengths == 0, 1.0) -> scores = (keys - query).norm(dim=-1)
        scores.topk(k) -> scores.topk(k, largest=False)
        A cosine is about directions. Does the length of a key play a part in yours?
    scaled_dot_products: dot products over the square root of the width instead of cosines
        lengths = keys.norm(dim=-1) * query.norm() -> lengths = torch.full_like(keys[:, 0], len(query) ** 0.5)
        That was attention's score. A key that is ten times as long scores ten times as much in it.
    softmax_of_dot_products: weights of a softmax over dot products instead of cosines
        scores = keys @ query / lengths.masked_fill(lengths == 0, 1.0) -> scores = torch.softmax(keys @ query, dim=0)
        That was the soft lookup of lesson 7. Here each score is independent of the others.
    squares_of_lengths: divided by the squares of the lengths
        keys.norm(dim=-1) * query.norm() -> keys.square().sum(dim=-1) * query.square().sum()
        A vector's cosine with itself is 1. What does yours give, if the vector is 2 long?
    columns_normalized: the columns of keys were brought to length 1, not its rows
        lengths = keys.norm(dim=-1) * query.norm()
        -> keys = F.normalize(keys, dim=0)
        |    lengths = query.norm().expand(len(keys))
        Each key is a row. Which length has to go?
    values_as_keys: a value that comes twice was kept once
        return [(values[i], score) for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
        -> return sorted(dict(zip(values, scores.tolist(), strict=True)).items(), key=lambda pair: -pair[1])[:k]
        Two videos may have the same title. What becomes of the first in a dictionary?
    sorted_by_value: sorted by the values, not by the scores
        return [(values[i], score) for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
        -> return sorted(zip(values, scores.tolist(), strict=True), reverse=True)[:k]
        Pairs are sorted by their first entry.
    order_of_the_list: the right ones, in the order of the list
        zip(best.indices.tolist(), best.values.tolist(), strict=True)]
        -> sorted(zip(best.indices.tolist(), best.values.tolist(), strict=True))]
        Best first. Do you sort the pairs by score or by index?
    one_too_many: one value too many, where there is one more
        scores.topk(k) -> scores.topk(min(k + 1, len(values)))
        How many did the caller ask for?
    ordered_by_dot_products: ordered by dot products, though the scores are cosines
        best = scores.topk(k) -> best = (keys @ query).topk(k)
        [(values[i], score) -> [(values[i], scores[i].item())
        Which numbers decide who comes first in yours, and which ones are handed out?
    negative_ones_left_out: values with a negative score are left out
        best.values.tolist(), strict=True)] -> best.values.tolist(), strict=True) if score > 0]
        The k best are asked for, however bad they are.
    score_first: value and score exchanged in each pair
        (values[i], score) -> (score, values[i])
        What does the caller want to read first?
""")

# ---------------------------------------------------------------- fixed_sentence_vectors


def cases_fixed_sentence_vectors(draw):
    def case(*lengths, T=None, D=5, pad_id=0, dtype="float32", **options):
        T = T or max(lengths)
        ids = draw.integers(1, 9, (len(lengths), T))
        ids = torch.where(ids == pad_id, 0, ids)  # 0 is a word where it is not the padding
        ids = torch.where(torch.arange(T) < torch.tensor(lengths)[:, None], ids, pad_id)
        if options.get("gradient"):
            return Case((draw.normal(9, D, dtype=torch.float64), ids, pad_id), via="with_a_table", **options)
        return Case((Stub("mixing", (D, dtype)), ids, pad_id), **options)

    return [
        case(5, 2, 3, note="sentences of 5, 2 and 3 tokens"),
        case(1, 5, 4, note="sentences of 1, 5 and 4 tokens"),
        case(4, 2, 5, pad_id=7, part="another pad_id", note="padding has the id 7, and 0 is a word"),
        case(4, T=6, part=BATCH_OF_ONE, note="one sentence of 4 tokens, padded to 6"),
        case(3, 3, T=5, part="all padded alike", note="two sentences of 3 tokens, padded to 5"),
        case(4, 4, 4, part="nothing padded", note="three sentences of 4 tokens"),
        case(5, 2, 3, dtype="float64", part=DTYPE),
        case(5, 2, 3, part=GRADIENT, gradient=True, note="a network that learns the vectors of its words"),
    ]


fixed_sentence_vectors = Exercise(
    "fixed_sentence_vectors", cases_fixed_sentence_vectors, axes=("sentence", "channel")
).with_mistakes("""
    published: the buggy version
        encode(ids, mask[:, None, None, :]) -> encode(ids)
        mean_pool(x, mask) -> x.mean(dim=1)
        Take a batch of a short and a long sentence, and the short one alone. What differs?
    pooled_over_padding: padding is still averaged
        mean_pool(x, mask) -> x.mean(dim=1)
        Padding is masked in attention. What happens after that?
    words_see_padding: the words still attend to padding
        encode(ids, mask[:, None, None, :]) -> encode(ids)
        The average is right. Which keys must have weight 0, and does your mask block rows or columns?
    sentences_as_queries: the mask has the sentences where the queries belong
        encode(ids, mask[:, None, None, :]) -> encode(ids, mask)
        The mask has to broadcast to (B, H, T, T), and dimensions are matched from the last one on. With what is B matched
        in yours?
    sentences_as_heads: the mask has the sentences where the heads belong
        encode(ids, mask[:, None, None, :]) -> encode(ids, mask[:, None])
        The mask has to broadcast to (B, H, T, T), and dimensions are matched from the last one on. With what is B matched
        in yours?
    pad_id_zero: padding is always the id 0
        ids != pad_id -> ids != 0
        Padding may have another id. Where do you use pad_id?
    padding_for_words: the mask is True at padding, and false at the words
        ids != pad_id -> ids == pad_id
        True means: may be seen, and is averaged. Which tokens should that be?
    mask_reversed: the mask is the wrong way round for the network
        mask[:, None, None, :]) -> ~mask[:, None, None, :])
        True means: may attend.
    first_token: the first token instead of the mean
        mean_pool(x, mask) -> x[:, 0]
        This network was trained with the mean.
    kept_exchanged: padding is pooled instead of the tokens
        mean_pool(x, mask) -> mean_pool(x, ~mask)
        Of which rows is the mean wanted?
    divided_by_length: divided by T, padding included
        mean_pool(x, mask) -> (x * mask.unsqueeze(-1)).mean(dim=1)
        The sum is right. How many rows are in it?
    summed: a sum, not a mean
        mean_pool(x, mask) -> (x * mask.unsqueeze(-1)).sum(dim=1)
        Longer sentences get longer vectors from yours.
    last_token: the last token instead of the mean
        mean_pool(x, mask) -> x[torch.arange(len(ids)), mask.sum(dim=1) - 1]
        This network was trained with the mean.
    normalized: the vectors were brought to length 1
        mean_pool(x, mask) -> F.normalize(mean_pool(x, mask), dim=-1)
        Many libraries do that afterwards. Here the mean itself is wanted.
    causal_mask: words do not attend to later words
        encode(ids, mask[:, None, None, :]) -> encode(ids, torch.ones(ids.shape[1], ids.shape[1]).tril().bool())
        A causal mask is for a model that generates text. Which keys must be masked here?
    padding_for_words_alone: the mask is True at padding, and false at the words
        ids != pad_id -> ids == pad_id
        mean_pool(x, mask) -> (x * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        True means: may be seen, and is averaged. Which tokens should that be?
    padding_in_the_sum: padding is in the sum, though not in the count
        mean_pool(x, mask) -> x.sum(dim=1) / mask.sum(dim=1, keepdim=True)
        The count is right. Which rows did you add up?
""")

# ---------------------------------------------------------------- quizzes


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
