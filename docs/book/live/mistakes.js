/* Known mistakes of the course, each with the functions that take the place of right ones (PARTS in machine.js).

   name: the course's words for it. box: where the map shows it; place: whose attention shows it best. padded: it needs
   a sentence that is filled up with padding, as in a batch; alone a sentence has none, and would hide the mistake. */
"use strict";

const MISTAKES = {
  root_of_width: {
    box: "embed",
    name: "vectors multiplied by the square root of the width",
    parts: { embed: (ids, table) => ids.map((id) => table[id].map((value) => value * Math.sqrt(table[id].length))) },
  },
  no_positions: {
    box: "place",
    name: "no positions",
    parts: { add_positions: (x) => x },
  },
  positions_doubled: {
    box: "place",
    name: "positions doubled",
    parts: { add_positions: (x, table) => x.map((row, t) => row.map((value, i) => value + 2 * table[t][i])) },
  },
  keys_reshaped: {
    box: "scores",
    name: "the keys were reshaped instead of transposed",
    parts: {
      attention_scores(Q, K) {
        const flat = K.flatMap((k) => [...k]); // read as (d_k, T_k), row after row
        return Q.map((q) => K.map((_, t) => q.reduce((sum, value, i) => sum + value * flat[i * K.length + t], 0)));
      },
    },
  },
  not_scaled: {
    box: "scale",
    name: "the scores were not scaled",
    parts: { scale: (scores) => scores },
  },
  divided_by_d_k: {
    box: "scale",
    name: "divided by the width instead of its square root",
    parts: { scale: (scores, d_k) => scores.map((row) => row.map((score) => score / d_k)) },
  },
  no_causal_mask: {
    box: "mask",
    place: "self",
    name: "no causal mask",
    parts: { causal_mask: (T) => Array.from({ length: T }, () => Array(T).fill(true)) },
  },
  no_padding_mask: {
    box: "mask",
    name: "no padding mask",
    parts: { padding_mask: (ids) => ids.map(() => true) },
    padded: true, // alone a sentence has no padding; in a batch it has
  },
  mask_after_softmax: {
    box: "softmax",
    name: "the mask applied after the softmax",
    parts: {
      masked_softmax: (scores, mask) =>
        scores.map((row, q) => machine.softmax(row).map((weight, k) => (mask[q][k] ? weight : 0))),
    },
    padded: true,
  },
  softmax_over_queries: {
    box: "softmax",
    name: "softmax over the queries instead of the keys",
    parts: {
      masked_softmax(scores, mask) {
        const column = (k) => machine.softmax(scores.map((row, q) => (mask[q][k] ? row[k] : -Infinity)));
        const columns = scores[0].map((_, k) => column(k));
        return scores.map((row, q) => row.map((_, k) => columns[k][q]));
      },
    },
  },
  largest_value_alone: {
    box: "mix",
    name: "the value with the largest weight, alone",
    parts: { weighted_values: (weights, V) => weights.map((row) => V[row.indexOf(Math.max(...row))]) },
  },
  heads_glued: {
    box: "heads",
    name: "the entries merged in memory order, so that tokens and heads are mixed",
    parts: {
      merge_heads(heads) {
        const flat = Float64Array.from(heads.flat().flatMap((row) => [...row]));
        const width = heads.length * heads[0][0].length;
        return heads[0].map((_, t) => flat.slice(t * width, (t + 1) * width));
      },
    },
  },
  no_residual: {
    box: "norm1",
    name: "no residual connections",
    parts: { residual: (x, change) => change },
  },
  no_layer_norm: {
    box: "norm1",
    name: "no layer norm",
    parts: { layer_norm: (x) => x },
  },
  no_activation: {
    box: "feed",
    name: "no activation between the two layers",
    parts: { activation: (value) => value },
  },
  no_cross_attention: {
    box: "cross",
    name: "no cross-attention",
    parts: { cross: (found) => found.map((row) => row.map(() => 0)) },
  },
};
