/* What each box of the map shows of a run, as {title, says, pictures, thumb}.

   A picture has values (rows of numbers), labels (a word for each row), a caption, and a kind:
     strips  a row of colors for each word
     grid    a cell for each pair of words; the columns' words are `columns`
     bars    a length for each of a few things; `shown` puts a value into words
   thumb: what the box itself shows, if it is not the first picture. drawing.js has the pens. */
"use strict";

const PLACES = {
  attention: "the encoder’s attention",
  self: "the decoder’s masked attention",
  cross: "cross-attention",
};
const IN_HEAD = ["Q", "K", "V", "scores", "scale", "mask", "softmax", "mix", "heads"];
const IN_BLOCK = ["attention", "feed", "self", "cross", "feed2"];

const percent = (share) => {
  const digits = share >= 0.1 ? 0 : 2;
  return share >= 0.0001 ? `${(100 * share).toFixed(digits)}%` : "0%";
};

const strips = (values, labels, caption, hue = "signed") => ({ kind: "strips", values, labels, caption, hue });

/* run: what machine.translate made, with its words: source and target go in. chosen: {place, block, head, step}. */
function views(run, chosen, french) {
  const { source, target, encoder, decoder } = run;
  return {
    embed: embedView(encoder, source, "English"),
    place: placeView(encoder, source),
    attention: attentionView(run, chosen, "attention", {
      title: "Attention: each word attends to every word",
      says:
        "A row is a query, a column a key, and the weights of a row sum to 1. Four heads run in parallel, each with " +
        "its own weights.",
    }),
    norm1: normView(encoder, source, "norm1", "attention"),
    feed: feedView(encoder, source, "feed", chosen),
    norm2: normView(encoder, source, "norm2", "the feed-forward layer"),
    embed2: embedView(decoder, target, "French"),
    place2: placeView(decoder, target),
    self: attentionView(run, chosen, "self", {
      title: "Masked attention: the French words so far",
      says:
        "Each French word attends to itself and to those before it. The causal mask hides the words after it, " +
        "because the decoder has to predict them.",
    }),
    norm3: normView(decoder, target, "norm3", "masked attention"),
    cross: attentionView(run, chosen, "cross", {
      title: "Cross-attention: French attends to English",
      says:
        "A row is the last French word so far, a column an English word. To write the next word, the decoder attends " +
        "to the English word that it comes from, even where adjective and noun are in another order.",
    }),
    norm4: normView(decoder, target, "norm4", "cross-attention"),
    feed2: feedView(decoder, target, "feed2", chosen),
    norm5: normView(decoder, target, "norm5", "the feed-forward layer"),
    linear: linearView(run, chosen, french),
    loss: lossView(run, chosen, french),
    ...headViews(run, chosen),
  };
}

const attentionAt = (run, place, block) => (place === "attention" ? run.encoder : run.decoder).blocks[block][place];
const askingWords = (run, place) => (place === "attention" ? run.source : run.target);
const seenWords = (run, place) => (place === "self" ? run.target : run.source);

function embedView(side, words, language) {
  return {
    title: `Embedding: ${language} words become vectors`,
    says:
      "Each word is looked up in a table, which gives it a vector of 64 learned entries. The same word has the same " +
      "vector at every position.",
    pictures: [strips(side.embedded, words, "a vector of 64 entries for each word")],
  };
}

function placeView(side, words) {
  const added = side.placed.map((row, t) => row.map((value, i) => value - side.embedded[t][i]));
  return {
    title: "Position: order is added",
    says:
      "A pattern of sines and cosines, another one for each position, is added to the word’s vector, because " +
      "attention alone can’t tell one order from another.",
    pictures: [
      strips(added, words, "what is added to each word"),
      strips(side.placed, words, "the sum, which enters the first block"),
    ],
  };
}

function attentionView(run, chosen, place, words) {
  const { heads } = attentionAt(run, place, chosen.block);
  return {
    ...words,
    thumb: heads[0].weights.map((_, t) => heads.flatMap((head) => [...head.weights[t], 0])),
    pictures: heads.map((head, h) => ({
      kind: "grid",
      values: head.weights,
      labels: askingWords(run, place),
      columns: seenWords(run, place),
      hue: "weight",
      caption: `Block ${chosen.block + 1}, head ${h + 1}`,
      opens: { place, head: h },
      steps: place !== "attention",
    })),
  };
}

/* What the translation attends to: the mean of the last block's heads of cross-attention. */
function glanceView(run) {
  const heads = run.decoder.blocks.at(-1).cross.heads.map((head) => head.weights);
  const mean = (t, s) => heads.reduce((sum, weights) => sum + weights[t][s], 0) / heads.length;
  return {
    kind: "grid",
    values: heads[0].map((row, t) => Array.from(row, (_, s) => mean(t, s))),
    labels: run.written,
    columns: run.source,
    hue: "weight",
    caption: "Attention: each French word attends to English words (%)",
    steps: true,
  };
}

function normView(side, words, name, what) {
  const size = (vector) => Math.hypot(...vector);
  return {
    title: `Add and norm: what ${what} changes`,
    says:
      `The output of ${what} is added to its input (the residual connection), and layer norm rescales the ` +
      "sum. The bars show the length of the output relative to the input.",
    pictures: side.blocks.map((made, b) => ({
      kind: "bars",
      labels: words,
      values: made[name].change.map((row, t) => size(row) / size(made[name].before[t])),
      shown: (value) => `${Math.round(100 * value)}%`,
      caption: `Block ${b + 1}: relative length of the change`,
    })),
  };
}

function feedView(side, words, name, chosen) {
  const { hidden, out } = side.blocks[chosen.block][name];
  const awake = hidden.flatMap((row) => [...row]).filter((value) => value > 0).length / words.length;
  return {
    title: "Feed forward: each word separately",
    says:
      "64 entries become 128, those below 0 become 0 (ReLU), and the 128 become 64 again. On average over these " +
      `words, ${awake.toFixed(0)} of the 128 are above 0.`,
    pictures: [
      strips(hidden, words, `Block ${chosen.block + 1}: the 128 hidden activations`),
      strips(out, words, "the output, which is added to the input"),
    ],
  };
}

function linearView(run, chosen, french) {
  const logits = run.decoder.logits[chosen.step];
  const best = [...logits.keys()].sort((a, b) => logits[b] - logits[a]).slice(0, 8);
  return {
    title: "Linear: a score for every French word",
    says:
      `The logit of each of the ${french.length} French words and special tokens is the dot product of the last ` +
      `word’s vector with a learned one, plus a bias. Here are the eight largest after ${run.target[chosen.step]}.`,
    thumb: run.decoder.logits,
    pictures: [
      {
        kind: "bars",
        labels: best.map((id) => french[id]),
        values: best.map((id) => logits[id]),
        shown: (value) => value.toFixed(1),
        caption: "Largest logits",
      },
    ],
  };
}

function lossView(run, chosen, french) {
  const pictures = run.steps.map((step, t) => {
    const best = [...step.keys()].sort((a, b) => step[b] - step[a]).slice(0, 4);
    return {
      kind: "bars",
      labels: best.map((id) => french[id]),
      values: best.map((id) => Math.exp(step[id])),
      top: 1,
      shown: percent,
      caption: `after ${run.target[t]}`,
      now: t === chosen.step,
    };
  });
  return {
    title: "Softmax: the next word, step by step",
    says:
      "Softmax turns logits into probabilities. The most probable word becomes the decoder’s next input, until " +
      "<eos> ends the sentence. In training, the loss is minus the logarithm of the true word’s probability.",
    thumb: pictures.map((picture) => picture.values),
    pictures,
  };
}

/* The boxes of one head, the chosen one. */
function headViews(run, chosen) {
  const attention = attentionAt(run, chosen.place, chosen.block);
  const head = attention.heads[chosen.head];
  const asking = askingWords(run, chosen.place), seen = seenWords(run, chosen.place);
  const grid = (values, caption, more) => ({
    kind: "grid",
    values,
    labels: asking,
    columns: seen,
    hue: "weight",
    caption,
    steps: chosen.place !== "attention",
    ...more,
  });
  return {
    Q: {
      title: "Queries: what each word searches for",
      says: "Each word’s vector is multiplied by W_Q; this head takes 16 entries of the product.",
      pictures: [strips(head.Q, asking, "a query of 16 entries for each word", "Q")],
    },
    K: {
      title: "Keys: what each word can be found by",
      says: "Each word’s vector is multiplied by W_K; this head takes 16 entries of the product.",
      pictures: [strips(head.K, seen, "a key of 16 entries for each word", "K")],
    },
    V: {
      title: "Values: what each word contributes",
      says: "Each word’s vector is multiplied by W_V; this head takes 16 entries of the product.",
      pictures: [strips(head.V, seen, "a value of 16 entries for each word", "V")],
    },
    scores: {
      title: "Scores: each query with each key",
      says: "One number for each pair: the dot product of the row’s query and the column’s key.",
      pictures: [grid(head.scores, "dot products", { hue: "signed", digits: 1 })],
    },
    scale: {
      title: "Scale: the scores are divided",
      says: "By the square root of the head’s width, √16 = 4. Otherwise, wide heads would have larger scores.",
      pictures: [grid(head.scaled, "scaled scores", { hue: "signed", digits: 1 })],
    },
    mask: {
      title: "Mask: what may be seen",
      says:
        chosen.place === "self"
          ? "A word may attend to itself and to the words before it."
          : "A word may attend to every word, but not to padding, which fills up the short sentences of a batch.",
      pictures: [grid(head.mask.map((row) => row.map(Number)), "1 is visible, hatched is masked", { mask: true })],
    },
    softmax: {
      title: "Softmax: scores become weights",
      says: "Each row becomes positive and sums to 1. Masked keys get weight 0.",
      pictures: [grid(head.weights, "attention weights in percent")],
    },
    mix: {
      title: "Mix the values",
      says: "The output for each word is the average of all values, weighted by its attention weights.",
      pictures: [strips(head.out, asking, "an output of 16 entries for each word", "V")],
    },
    heads: {
      title: "Join the heads",
      says:
        "The four heads’ outputs are joined to 64 entries, and W_O mixes them into the output of attention.",
      pictures: [
        strips(attention.joined, asking, "the outputs of the four heads", "V"),
        strips(attention.out, asking, "times W_O"),
      ],
    },
  };
}
