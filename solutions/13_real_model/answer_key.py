"""Answer key of lesson 13: loading a published network, its heads, and vectors of sentences."""

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, Case, Exercise, Fixture, Mistake, Quiz

BATCH_OF_ONE, ONE_TOKEN = "a batch of one", "a single token"

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
        return Case((state,), part=part, view="entries_of_blocks", note=note or f"a network of {layers} layers")

    return [
        case(2, 3, 5),
        case(3, 4, 6, shuffled=True, note="a network of 3 layers, its names in any order"),
        case(1, 3, 7, others=False, note="one layer, no embeddings, no pooler"),
        case(12, 2, 3, part="more than ten layers"),
        case(2, 3, 5, dtype=torch.float64, part=DTYPE),
    ]


rename_weights = Exercise(
    "rename_weights",
    cases_rename_weights,
    mistakes=[
        Mistake(
            "queries_and_keys_exchanged",
            "queries and keys exchanged",
            "Which of the two asks?",
            (
                '"attention.self.query": "attention.W_q" -> "attention.self.query": "attention.W_k"',
                '"attention.self.key": "attention.W_k" -> "attention.self.key": "attention.W_q"',
            ),
        ),
        Mistake(
            "keys_and_values_exchanged",
            "keys and values exchanged",
            "All three projections have one shape, so nothing complains. Compare your table with the lesson's, row by row.",
            (
                '"attention.self.key": "attention.W_k" -> "attention.self.key": "attention.W_v"',
                '"attention.self.value": "attention.W_v" -> "attention.self.value": "attention.W_k"',
            ),
        ),
        Mistake(
            "norms_exchanged",
            "the two norms exchanged",
            "Which LayerNorm follows the attention?",
            (
                '"attention.output.LayerNorm": "norm1" -> "attention.output.LayerNorm": "norm2"',
                '"output.LayerNorm": "norm2", -> "output.LayerNorm": "norm1",',
            ),
        ),
        Mistake(
            "up_and_down_exchanged",
            "the feed-forward network's layers exchanged",
            "The intermediate layer is the wide one. Which of your two makes the vector wider?",
            (
                '"intermediate.dense": "feed_forward.up" -> "intermediate.dense": "feed_forward.down"',
                '"output.dense": "feed_forward.down", -> "output.dense": "feed_forward.up",',
            ),
        ),
        Mistake(
            "counted_from_one",
            "layers counted from 1",
            "Both files count their layers in the same way.",
            'mine[f"blocks.{i}. -> mine[f"blocks.{int(i) + 1}.',
        ),
        Mistake(
            "one_digit",
            "only one digit of the layer's number was read",
            "What becomes of layer 10 in yours?",
            'mine[f"blocks.{i}. -> mine[f"blocks.{i[0]}.',
        ),
        Mistake(
            "transposed",
            "the matrices were transposed",
            "BERT's file and nn.Linear agree: out first. Which other network's file does not?",
            "] = tensor -> ] = tensor.t()",
        ),
        Mistake(
            "biases_forgotten",
            "the biases are missing",
            "Print the names of your result. Do they all end alike?",
            'name.startswith("encoder.layer.") -> name.startswith("encoder.layer.") and name.endswith("weight")',
        ),
        Mistake(
            "norms_forgotten",
            "the norms are missing",
            "A block has two layers that are no matrices.",
            'name.startswith("encoder.layer.") -> name.startswith("encoder.layer.") and "LayerNorm" not in name',
        ),
        Mistake(
            "joined_name_cut",
            "attention.output.dense was taken for output.dense",
            "One of BERT's names ends with another of them. Which has to be replaced first?",
            '"attention.W_o" -> "attention.feed_forward.down"',
        ),
        Mistake(
            "first_layer_everywhere",
            "every layer got the same numbers",
            "Is there a 0 in your code where a number of a layer should stand?",
            "] = tensor -> ] = state_dict[name.replace(f'layer.{i}.', 'layer.0.')]",
        ),
    ],
)

# ---------------------------------------------------------------- bert_embeddings


def embedding_weights(draw, V, D, places, dtype=torch.float32, scale=0.05):
    def table(*shape):
        return draw.normal(*shape, dtype=dtype, scale=scale)

    return {
        "embeddings.word_embeddings.weight": table(V, D),
        "embeddings.position_embeddings.weight": table(places, D),
        "embeddings.token_type_embeddings.weight": table(2, D),
        "embeddings.LayerNorm.weight": draw.uniform(D, low=0.5, high=1.5, dtype=dtype),
        "embeddings.LayerNorm.bias": draw.normal(D, dtype=dtype),
    }


def cases_bert_embeddings(draw):
    def case(B, T, V=13, D=6, places=9, dtype=torch.float32, scale=0.05, **options):
        weights = embedding_weights(draw, V, D, places, dtype, scale)
        return Case((draw.integers(0, V, (B, T)), weights), **{"tolerance": tolerance(dtype)} | options)

    float64 = torch.float64
    return [
        case(3, 5),
        case(2, 7, scale=1.0, note="ids of shape (2, 7), long vectors"),
        case(3, 5, dtype=float64, part=DTYPE),
        case(2, 5, dtype=float64, scale=0.5, part=GRADIENT, gradient=True),
        case(1, 5, part=BATCH_OF_ONE),
        case(3, 1, part=ONE_TOKEN),
        case(2, 9, part="as many tokens as places"),
        case(2, 5, scale=1e-3, dtype=float64, part="short vectors", tolerance=1e-6),
    ]


def tolerance(dtype):
    return 2e-5 if dtype == torch.float32 else None


bert_embeddings = Exercise(
    "bert_embeddings",
    cases_bert_embeddings,
    axes=("token", "channel"),
    mistakes=[
        Mistake(
            "no_positions",
            "no positions",
            "Two equal words at two places get the same vector from yours. Which table knows places?",
            "words + positions + types -> words + types",
        ),
        Mistake(
            "no_types",
            "no type",
            "Row 0 of the type table is added for every token. It is not zero.",
            "words + positions + types -> words + positions",
        ),
        Mistake(
            "other_type",
            "the type's row 1",
            "Row 1 belongs to the second sentence of a pair. Have we got one?",
            '"embeddings.token_type_embeddings.weight"][0] -> "embeddings.token_type_embeddings.weight"][1]',
        ),
        Mistake(
            "types_summed",
            "both rows of types were added",
            "A token has one type, not two.",
            '"embeddings.token_type_embeddings.weight"][0] -> "embeddings.token_type_embeddings.weight"].sum(0)',
        ),
        Mistake(
            "not_normalized",
            "no norm",
            "The formula has one more step after the sum.",
            "return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) -> return x",
        ),
        Mistake(
            "default_eps",
            "the norm's default eps, 0.00001",
            "In the real file the vectors are short before the norm. Which ε does BERT use?",
            "beta, 1e-12) -> beta, 1e-5)",
        ),
        Mistake(
            "plain_norm",
            "the norm without its weight and bias",
            "The file has two more vectors for the norm.",
            "F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) -> F.layer_norm(x, gamma.shape, None, None, 1e-12)",
        ),
        Mistake(
            "norm_without_bias",
            "the norm's bias is not used",
            "What does LN of a row of equal numbers give, by the formula?",
            "gamma, beta, 1e-12) -> gamma, None, 1e-12)",
        ),
        Mistake(
            "places_from_the_end",
            "the last rows of the position table",
            "The first token stands at place 0.",
            "[: ids.shape[1]] -> [len(weights['embeddings.position_embeddings.weight']) - ids.shape[1] :]",
        ),
        Mistake(
            "scaled_words",
            "the words were multiplied by the square root of the width",
            "The Transformer of 2017 does that to its embeddings. Does the formula here?",
            "words + positions + types -> words * words.shape[-1] ** 0.5 + positions + types",
        ),
        Mistake(
            "words_normalized",
            "only the words were normalized",
            "First the sum, then the norm.",
            (
                "x = words + positions + types -> x = words",
                "F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) -> "
                "F.layer_norm(x, gamma.shape, gamma, beta, 1e-12) + positions + types",
            ),
        ),
    ],
)

# ---------------------------------------------------------------- find_head


def cases_find_head(draw):
    def case(L, H, T, same=False, dtype=torch.float32, **options):
        attention = torch.softmax(draw.normal(L, H, T, T, dtype=dtype) * 2, dim=-1)
        query, key = draw.sample(range(T), 2) if T > 1 else (0, 0)
        return Case((attention, query, query if same else key), **options)

    return [
        *(case(3, 5, 4) for _ in range(3)),
        case(6, 12, 3, note="six layers of twelve heads"),
        case(4, 2, 5, note="more layers than heads"),
        case(3, 5, 4, same=True, part="a word that looks at itself"),
        case(1, 4, 3, part="one layer"),
        case(4, 1, 3, part="one head"),
        case(3, 5, 4, dtype=torch.float64, part=DTYPE),
    ]


find_head = Exercise(
    "find_head",
    cases_find_head,
    mistakes=[
        Mistake(
            "query_and_key_exchanged",
            "query and key exchanged",
            "Rows look, columns are looked at. Which axis is which?",
            "attention[:, :, query, key] -> attention[:, :, key, query]",
        ),
        Mistake(
            "layer_and_head_exchanged",
            "head and layer exchanged in the result",
            "In which order does the exercise want them?",
            "return layer, head, -> return head, layer,",
        ),
        Mistake(
            "divided_by_layers",
            "the place was divided by the number of layers",
            "argmax counts along the last axis first. How long is that axis?",
            (
                "layer, head = divmod(table.argmax().item(), table.shape[1]) -> "
                "layer, head = divmod(table.argmax().item(), table.shape[0])",
                "table[layer, head].item() -> table.max().item()",
            ),
        ),
        Mistake(
            "counted_from_one",
            "layers and heads counted from 1",
            "The lesson counts from 0.",
            "return layer, head, -> return layer + 1, head + 1,",
        ),
        Mistake(
            "largest_of_all",
            "the largest weight anywhere, not the one from this query to this key",
            "First take out what belongs to the pair.",
            "table = attention[:, :, query, key] -> table = attention.amax(dim=(2, 3))",
        ),
        Mistake(
            "smallest", "the head with the smallest weight", "Most, not least.", "table.argmax() -> table.argmin()"
        ),
        Mistake(
            "best_layer_first",
            "first the layer with the best mean, then its best head",
            "The best single head may stand in a layer that is poor on the whole.",
            (
                "layer, head = divmod(table.argmax().item(), table.shape[1]) -> "
                "layer = table.mean(dim=1).argmax().item(); head = table[layer].argmax().item()",
            ),
        ),
        Mistake(
            "whole_column",
            "the mean over all queries",
            "Only one word looks here. Which one?",
            "attention[:, :, query, key] -> attention[:, :, :, key].mean(dim=2)",
        ),
    ],
)

# ---------------------------------------------------------------- mean_pool


def cases_mean_pool(draw):
    def case(B, T, D=6, dtype=torch.float32, mask=None, **options):
        x = draw.normal(B, T, D, dtype=dtype) + draw.normal(B, 1, D, dtype=dtype)
        return Case((x, draw.mask(B, T) if mask is None else mask), **options)

    def padded(*lengths, T):
        return torch.arange(T) < torch.tensor(lengths)[:, None]

    float64, empty = torch.float64, draw.mask(4, 5)
    empty[draw.integer(0, 4)] = False
    return [
        case(3, 5, mask=padded(5, 2, 3, T=5), note="sentences of 5, 2 and 3 tokens"),
        case(2, 7, 4, note="kept tokens anywhere"),
        case(3, 5, mask=padded(1, 4, 5, T=5), dtype=float64, part=DTYPE),
        case(3, 5, mask=padded(5, 1, 3, T=5), dtype=float64, part=GRADIENT, gradient=True),
        case(1, 5, part=BATCH_OF_ONE),
        case(3, 1, mask=padded(1, 1, 1, T=1), part=ONE_TOKEN),
        case(2, 5, mask=padded(5, 5, T=5), part="nothing padded"),
        case(4, 5, mask=empty, part="a row in which nothing is kept"),
        case(4, 5, mask=empty, dtype=float64, part="a row in which nothing is kept", gradient=True),
    ]


mean_pool = Exercise(
    "mean_pool",
    cases_mean_pool,
    axes=("sentence", "channel"),
    mistakes=[
        Mistake(
            "padding_averaged",
            "padding was averaged too",
            "The mask is not used. Whose rows should count?",
            "return (x * kept).sum(dim=1) / counts -> return x.mean(dim=1)",
        ),
        Mistake(
            "divided_by_length",
            "divided by T, padding included",
            "The sum is right. How many rows are in it?",
            "counts = kept.sum(dim=1).clamp(min=1) -> counts = x.shape[1]",
        ),
        Mistake(
            "summed",
            "a sum, not a mean",
            "Longer sentences get longer vectors from yours.",
            "return (x * kept).sum(dim=1) / counts -> return (x * kept).sum(dim=1)",
        ),
        Mistake(
            "empty_is_nan",
            "0 divided by 0 where nothing is kept",
            "A row without tokens gives zeros. By what do you divide there?",
            "kept.sum(dim=1).clamp(min=1) -> kept.sum(dim=1)",
        ),
        Mistake(
            "mask_reversed",
            "padding was kept and the tokens left out",
            "True means kept.",
            "mask.unsqueeze(-1).to(x.dtype) -> (~mask).unsqueeze(-1).to(x.dtype)",
        ),
        Mistake(
            "first_token",
            "the first token's vector",
            "That is pooling too, and BERT's own. This network was trained with the mean.",
            "return (x * kept).sum(dim=1) / counts -> return x[:, 0] + 0 * counts",
        ),
        Mistake(
            "largest",
            "the largest entry of each channel",
            "Max pooling exists as well. Here the mean is wanted.",
            "return (x * kept).sum(dim=1) / counts -> "
            "return x.masked_fill(kept == 0, -torch.inf).amax(dim=1).masked_fill(kept.sum(dim=1) == 0, 0.0)",
        ),
        Mistake(
            "one_more",
            "divided by one more than the number of kept tokens",
            "Something was added so that nothing is divided by 0. It changes the other rows too.",
            "kept.sum(dim=1).clamp(min=1) -> (kept.sum(dim=1) + 1)",
        ),
        Mistake(
            "whole_batch",
            "divided by the mean number of kept tokens in the batch",
            "Each sentence has a number of its own.",
            "kept.sum(dim=1).clamp(min=1) -> kept.sum(dim=1).mean().clamp(min=1)",
        ),
        Mistake(
            "normalized",
            "the vectors were brought to length 1",
            "Many libraries do that afterwards. Here the mean itself is wanted.",
            "return (x * kept).sum(dim=1) / counts -> "
            "return torch.nn.functional.normalize((x * kept).sum(dim=1) / counts, dim=-1)",
        ),
    ],
)

# ---------------------------------------------------------------- search


def cases_search(draw):
    def case(N, k, D=5, dtype=torch.float32, spread=True, values=None, zero=None, **options):
        keys = draw.normal(N, D, dtype=dtype)
        if spread:
            keys = keys * draw.uniform(N, 1, low=0.2, high=4.0, dtype=dtype)
        query = draw.normal(D, dtype=dtype)
        if zero == "last":  # between good and bad ones: half of the keys point away
            keys[draw.integer(0, N)] = 0
        values = values or [f"{draw.word()} {i}" for i in range(N)]
        return Case((query, keys, values, k), **options)

    def lengths(small, large):
        keys = draw.normal(6, 4, dtype=torch.float64)
        sizes = torch.tensor([small, large, 1.0, small, 1.0, large], dtype=torch.float64)
        keys = keys / keys.norm(dim=-1, keepdim=True) * sizes[:, None]
        query = draw.normal(4, dtype=torch.float64)
        return query / query.norm() * small, keys, [draw.word() for _ in range(6)], 6

    return [
        case(7, 3),
        case(6, 6, note="all of six, in order"),
        case(5, 1, note="only the best of five"),
        case(7, 4, dtype=torch.float64, part=DTYPE),
        case(5, 5, zero="last", part="a key of zeros"),
        case(1, 1, part="one key"),
        case(4, 2, values=[(draw.word(), i) for i in range(4)], part="values of any kind"),
        Case(lengths(1e-3, 1e3), part="short and long keys"),
    ]


search = Exercise(
    "search",
    cases_search,
    mistakes=[
        Mistake(
            "dot_products",
            "dot products instead of cosines",
            "A key that is ten times as long scores ten times as much in yours.",
            "lengths = keys.norm(dim=-1) * query.norm() -> lengths = torch.ones_like(keys[:, 0])",
        ),
        Mistake(
            "query_not_normalized",
            "divided by the keys' lengths only",
            "The order is right and the scores are not. Whose length is missing?",
            "keys.norm(dim=-1) * query.norm() -> keys.norm(dim=-1)",
        ),
        Mistake(
            "keys_not_normalized",
            "divided by the query's length only",
            "Long keys win too often in yours.",
            "keys.norm(dim=-1) * query.norm() -> query.norm().expand(len(keys))",
        ),
        Mistake(
            "zero_is_nan",
            "NaN for a key of zeros",
            "0 divided by 0. What should the score be?",
            "lengths.masked_fill(lengths == 0, 1.0) -> lengths",
        ),
        Mistake(
            "worst_first",
            "the worst ones",
            "Which end of the order is wanted?",
            "scores.topk(k) -> scores.topk(k, largest=False)",
        ),
        Mistake(
            "ascending",
            "the right ones, the best of them last",
            "Best first.",
            "for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)] -> "
            "for i, score in reversed(list(zip(best.indices.tolist(), best.values.tolist(), strict=True)))]",
        ),
        Mistake(
            "all_of_them",
            "all values instead of k",
            "How many did the caller ask for?",
            "scores.topk(k) -> scores.topk(len(values))",
        ),
        Mistake(
            "places",
            "places instead of values",
            "The caller wants to see titles.",
            "[(values[i], score) -> [(i, score)",
        ),
        Mistake(
            "softmaxed",
            "weights of a softmax instead of cosines",
            "That was the soft lookup of lesson 7. Here each score stands by itself.",
            "best = scores.topk(k) -> best = torch.softmax(scores, dim=0).topk(k)",
        ),
        Mistake(
            "absolute",
            "the sign of the score was dropped",
            "A key that points the other way is no good answer.",
            "best = scores.topk(k) -> best = scores.abs().topk(k)",
        ),
        Mistake(
            "distances",
            "one minus the cosine",
            "Near is high here: the cosine itself is the score.",
            "[(values[i], score) -> [(values[i], 1 - score)",
        ),
    ],
)

# ---------------------------------------------------------------- fixed_sentence_vectors


def cases_fixed_sentence_vectors(draw):
    def case(*lengths, D=5, pad_id=0, dtype="float32", **options):
        ids = draw.integers(1, 9, (len(lengths), max(lengths)))
        ids = torch.where(ids == pad_id, 0, ids)  # 0 is a word where it is not the padding
        ids = torch.where(torch.arange(max(lengths)) < torch.tensor(lengths)[:, None], ids, pad_id)
        return Case((Fixture("mixing", (D, dtype)), ids, pad_id), **options)

    return [
        case(5, 2, 3, note="sentences of 5, 2 and 3 tokens"),
        case(1, 6, 4, D=4, note="sentences of 1, 6 and 4 tokens"),
        case(4, 2, 5, pad_id=7, part="another pad_id", note="padding has the id 7, and 0 is a word"),
        case(4, part=BATCH_OF_ONE, note="one sentence"),
        case(4, 4, 4, part="nothing padded", note="three sentences of 4 tokens"),
        case(5, 2, 3, dtype="float64", part=DTYPE),
    ]


fixed_sentence_vectors = Exercise(
    "fixed_sentence_vectors",
    cases_fixed_sentence_vectors,
    axes=("sentence", "channel"),
    mistakes=[
        Mistake(
            "published",
            "the published version",
            "Take a batch of a short and a long sentence, and the short one alone. What differs?",
            ("encode(ids, kept[:, None, None, :]) -> encode(ids)", "mean_pool(x, kept) -> x.mean(dim=1)"),
        ),
        Mistake(
            "pooled_over_padding",
            "padding is still averaged",
            "The words no longer look at padding. What happens afterwards?",
            "mean_pool(x, kept) -> x.mean(dim=1)",
        ),
        Mistake(
            "words_see_padding",
            "the words still look at padding",
            "The average is right. Does the network know what is padding?",
            "encode(ids, kept[:, None, None, :]) -> encode(ids)",
        ),
        Mistake(
            "pad_id_zero",
            "padding is always the id 0",
            "Somebody's padding has another id. Where does it go in your code?",
            "ids != pad_id -> ids != 0",
        ),
        Mistake(
            "mask_reversed",
            "the mask is the wrong way round for the network",
            "True means: may attend.",
            "kept[:, None, None, :]) -> ~kept[:, None, None, :])",
        ),
        Mistake(
            "first_token",
            "the first token instead of the mean",
            "This network was trained with the mean.",
            "mean_pool(x, kept) -> x[:, 0]",
        ),
        Mistake(
            "kept_exchanged",
            "padding is pooled instead of the tokens",
            "Of which rows is the mean wanted?",
            "mean_pool(x, kept) -> mean_pool(x, ~kept)",
        ),
    ],
)

# ---------------------------------------------------------------- rename_gpt2


def gpt2_state(draw, layers, D, F, dtype=torch.float32, prefix="", tables=True):
    state = {
        f"{prefix}wte.weight": draw.normal(7, D, dtype=dtype),
        f"{prefix}wpe.weight": draw.normal(5, D, dtype=dtype),
    }
    for i in range(layers):
        at = f"{prefix}h.{i}."
        shapes = {"attn.c_attn": (D, 3 * D), "attn.c_proj": (D, D), "mlp.c_fc": (D, F), "mlp.c_proj": (F, D)}
        for part in ("ln_1", "ln_2"):
            state[f"{at}{part}.weight"] = draw.normal(D, dtype=dtype)
            state[f"{at}{part}.bias"] = draw.normal(D, dtype=dtype)
        if tables:
            state[f"{at}attn.bias"] = torch.ones(1, 1, 5, 5, dtype=dtype).tril()
        for part, shape in shapes.items():
            state[f"{at}{part}.weight"] = draw.normal(*shape, dtype=dtype)
            state[f"{at}{part}.bias"] = draw.normal(shape[1], dtype=dtype)
    return state | {
        f"{prefix}ln_f.weight": draw.normal(D, dtype=dtype),
        f"{prefix}ln_f.bias": draw.normal(D, dtype=dtype),
    }


def cases_rename_gpt2(draw):
    def case(layers, *sizes, note=None, part="values", **options):
        state = gpt2_state(draw, layers, *sizes, **options)
        return Case((state,), part=part, view="entries_of_blocks", note=note or f"a network of {layers} layers")

    return [
        case(2, 3, 8),
        case(1, 4, 5, tables=False, note="one layer, no table of the mask"),
        case(2, 3, 7, prefix="transformer.", part="names that begin with transformer."),
        case(11, 2, 3, part="more than ten layers"),
        case(2, 3, 8, dtype=torch.float64, part=DTYPE),
    ]


rename_gpt2 = Exercise(
    "rename_gpt2",
    cases_rename_gpt2,
    mistakes=[
        Mistake(
            "not_transposed",
            "nothing was transposed",
            "Compare the shapes with those that your layers have.",
            "piece.T if piece.dim() == 2 else piece -> piece",
        ),
        Mistake(
            "square_not_transposed",
            "the square matrices were not transposed",
            "Their shape is the same either way, and still they are (in, out).",
            "piece.T if piece.dim() == 2 else piece -> piece.T if piece.dim() == 2 and piece.shape[0] != piece.shape[1] else piece",
        ),
        Mistake(
            "order_of_projections",
            "queries, keys and values in another order",
            "The table tells in which order they stand side by side.",
            '("attention.W_q", "attention.W_k", "attention.W_v") -> ("attention.W_k", "attention.W_q", "attention.W_v")',
        ),
        Mistake(
            "values_first",
            "values first",
            "The table tells in which order they stand side by side.",
            '("attention.W_q", "attention.W_k", "attention.W_v") -> ("attention.W_v", "attention.W_q", "attention.W_k")',
        ),
        Mistake(
            "norms_exchanged",
            "the two norms exchanged",
            "Which of them is the attention's?",
            ('"ln_1": ("norm1",) -> "ln_1": ("norm2",)', '"ln_2": ("norm2",) -> "ln_2": ("norm1",)'),
        ),
        Mistake(
            "interleaved",
            "every third column was taken",
            "The three stand side by side as blocks, not in turns.",
            "pieces = tensor.chunk(len(names[part]), dim=-1) -> "
            "pieces = [tensor[..., j :: len(names[part])] for j in range(len(names[part]))]",
        ),
        Mistake(
            "biases_forgotten",
            "the biases are missing",
            "Print the names of your result. Do they all end alike?",
            'if part in names -> if part in names and kind == "weight"',
        ),
        Mistake(
            "prefix_unknown",
            "names that begin with transformer. are not found",
            "Some files begin every name with a word more.",
            'name.removeprefix("transformer.") -> name',
        ),
    ],
)

# ---------------------------------------------------------------- quizzes

quiz_1 = Quiz(
    "quiz_1",
    "b",
    {
        "a": "In all of them the verb is the next word, so a head that looks at the next word gets the same high mean. A "
        "hundred sentences of one form are one sentence.",
        "b": "Here the two stories say different things: one claim must fail. That is what a test is for. In this network "
        "it is the verb that loses.",
        "c": "That says whether other heads do it as well, not what this head does.",
    },
)
quiz_2 = Quiz(
    "quiz_2",
    "b",
    {
        "a": "A weight says where a head looks. What it gets is weight times value, and in the head of the lesson the value of "
        "[CLS] was seven times shorter than those of the words.",
        "b": "Weight and value belong together. A row must sum to 1, so a head with nothing to say needs a place to "
        "put its attention.",
        "c": "Trained networks do it regularly, good ones too. It is how a softmax says: nothing here.",
    },
)
quiz_3 = Quiz(
    "quiz_3",
    "b",
    {
        "a": "Its matrix is (D, 4D) in the file and (4D, D) in yours: copying it raises an error of shapes.",
        "b": "It is square, so the transpose fits, and the numbers are wrong. Only a comparison of outputs tells.",
        "c": "Their parameters are vectors: there is nothing to transpose, and nothing goes wrong.",
    },
)

exercises = [rename_weights, bert_embeddings, find_head, mean_pool, search, fixed_sentence_vectors, rename_gpt2]
quizzes = [quiz_1, quiz_2, quiz_3]
