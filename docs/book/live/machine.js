/* The course's translator in plain JavaScript: the network of lessons 1 to 11, with the same numbers and names.

   A vector is a Float64Array, a sentence inside the network a list of them, one a word. Nothing here knows of a page.
   `parts` are the functions that a mistake can replace (mistakes.js); each has the name of the exercise that asks for
   it. Every step returns all that it made on its way, so that the page can show it. */
"use strict";

const machine = (() => {
  const PAD = 0, BOS = 1, EOS = 2;
  const NUM_HEADS = 4, MAX_LEN = 24;

  // Vectors.

  /* Four sums at a time: a processor need not wait for one before it begins the next. Widths are multiples of 4. */
  function dot(a, b) {
    let s = 0, t = 0, u = 0, v = 0;
    for (let i = 0; i < a.length; i += 4) {
      s += a[i] * b[i];
      t += a[i + 1] * b[i + 1];
      u += a[i + 2] * b[i + 2];
      v += a[i + 3] * b[i + 3];
    }
    return s + t + (u + v);
  }

  function add(a, b) {
    const sum = new Float64Array(a);
    for (let i = 0; i < sum.length; i++) sum[i] += b[i];
    return sum;
  }

  /* Weights that add up to 1; all 0 where everything is hidden (-Infinity). */
  function softmax(row) {
    const top = Math.max(...row);
    if (top === -Infinity) return row.map(() => 0);
    const powers = row.map((score) => Math.exp(score - top));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  }

  function logSoftmax(row) {
    const top = Math.max(...row);
    const sum = row.reduce((total, score) => total + Math.exp(score - top), 0);
    return row.map((score) => score - top - Math.log(sum));
  }

  /* Each row of x (T, in) through a layer whose weight has a row for each number that comes out. */
  function linear(x, { weight, bias }) {
    return x.map((row) => {
      const out = new Float64Array(bias);
      for (let i = 0; i < out.length; i++) out[i] += dot(weight[i], row);
      return out;
    });
  }

  // The parts, one exercise each.

  const PARTS = {
    // Lesson 1
    embed: (ids, table) => ids.map((id) => table[id]),

    // Lesson 2
    add_positions: (x, table) => x.map((row, t) => add(row, table[t])),

    // Lesson 3: a score for each query (row) and each key (column)
    attention_scores: (Q, K) => Q.map((q) => K.map((k) => dot(q, k))),

    // Lesson 4
    scale: (scores, d_k) => scores.map((row) => row.map((score) => score / Math.sqrt(d_k))),

    // Lesson 5: true is what may be seen
    causal_mask: (T) => Array.from({ length: T }, (_, q) => Array.from({ length: T }, (_, k) => k <= q)),

    padding_mask(ids) {
      const length = ids.filter((id) => id !== PAD).length;
      return ids.map((_, t) => t < length);
    },

    combine_masks: (causal, padding) => causal.map((row) => row.map((seen, k) => seen && padding[k])),

    masked_softmax: (scores, mask) =>
      scores.map((row, q) => softmax(row.map((score, k) => (mask[q][k] ? score : -Infinity)))),

    // Lesson 7: for each query the values, mixed by its weights
    weighted_values: (weights, V) =>
      weights.map((row) => {
        const out = new Float64Array(V[0].length);
        for (let k = 0; k < V.length; k++) {
          for (let i = 0; i < out.length; i++) out[i] += row[k] * V[k][i];
        }
        return out;
      }),

    // Lesson 8
    split_heads: (x) => {
      const width = x[0].length / NUM_HEADS;
      return Array.from({ length: NUM_HEADS }, (_, h) => x.map((row) => row.slice(h * width, (h + 1) * width)));
    },

    merge_heads(heads) {
      const width = heads[0][0].length;
      return heads[0].map((_, t) => {
        const out = new Float64Array(heads.length * width);
        heads.forEach((head, h) => out.set(head[t], h * width));
        return out;
      });
    },

    // Lesson 9
    residual: (x, change) => add(x, change),

    layer_norm(x, gamma, beta) {
      const mean = x.reduce((a, b) => a + b) / x.length;
      const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
      const deviation = Math.sqrt(variance + 1e-5);
      return x.map((value, i) => ((value - mean) / deviation) * gamma[i] + beta[i]);
    },

    activation: (value) => Math.max(0, value),

    // Lesson 10: what cross-attention hands on
    cross: (found) => found,
  };

  // The network, from small to large.

  function head(parts, Q, K, V, mask) {
    const scores = parts.attention_scores(Q, K); // (T_q, T_k)
    const scaled = parts.scale(scores, Q[0].length);
    const weights = parts.masked_softmax(scaled, mask);
    return { Q, K, V, scores, scaled, mask, weights, out: parts.weighted_values(weights, V) };
  }

  const keysAndValues = (parts, layers, x) => ({
    K: parts.split_heads(linear(x, layers.W_k)),
    V: parts.split_heads(linear(x, layers.W_v)),
  });

  /* The words of x ask; keys and values are those of x itself in self-attention, the encoder's in cross-attention. */
  function multiHeadAttention(parts, layers, x, { K, V }, mask) {
    const Q = parts.split_heads(linear(x, layers.W_q));
    const heads = Q.map((_, h) => head(parts, Q[h], K[h], V[h], mask));
    const joined = parts.merge_heads(heads.map((one) => one.out));
    return { heads, joined, out: linear(joined, layers.W_o) };
  }

  const selfAttention = (parts, layers, x, mask) =>
    multiHeadAttention(parts, layers, x, keysAndValues(parts, layers, x), mask);

  function feedForward(parts, layers, x) {
    const hidden = linear(x, layers.up).map((row) => row.map(parts.activation));
    return { hidden, out: linear(hidden, layers.down) };
  }

  function addAndNorm(parts, norm, x, change) {
    const sums = x.map((row, t) => parts.residual(row, change[t]));
    return { before: x, change, out: sums.map((row) => parts.layer_norm(row, norm.weight, norm.bias)) };
  }

  function encoderBlock(parts, layers, x, mask) {
    const attention = selfAttention(parts, layers.attention, x, mask);
    const norm1 = addAndNorm(parts, layers.norm1, x, attention.out);
    const feed = feedForward(parts, layers.feed_forward, norm1.out);
    const norm2 = addAndNorm(parts, layers.norm2, norm1.out, feed.out);
    return { attention, norm1, feed, norm2, out: norm2.out };
  }

  function decoderBlock(parts, layers, y, memory, selfMask, memoryMask) {
    const self = selfAttention(parts, layers.self_attention, y, selfMask);
    const norm3 = addAndNorm(parts, layers.norm1, y, self.out);
    const cross = multiHeadAttention(parts, layers.cross_attention, norm3.out, memory, memoryMask);
    const norm4 = addAndNorm(parts, layers.norm2, norm3.out, parts.cross(cross.out));
    const feed2 = feedForward(parts, layers.feed_forward, norm4.out);
    const norm5 = addAndNorm(parts, layers.norm3, norm4.out, feed2.out);
    return { self, norm3, cross, norm4, feed2, norm5, out: norm5.out };
  }

  function placed(parts, ids, tokens, positions) {
    const embedded = parts.embed(ids, tokens.weight);
    return { embedded, placed: parts.add_positions(embedded, positions) };
  }

  /* Run x through blocks, each of which is (layers, x, which) -> what it made. */
  function through(blocks, x, run) {
    const made = [];
    for (const layers of Object.values(blocks)) {
      made.push(run(layers, x, made.length));
      x = made.at(-1).out;
    }
    return { blocks: made, out: x };
  }

  function encode(numbers, parts, src) {
    const start = placed(parts, src, numbers.encoder.tokens, numbers.positions);
    const seen = parts.padding_mask(src);
    const mask = src.map(() => seen);
    const run = (layers, x) => encoderBlock(parts, layers, x, mask);
    const made = { ...start, ...through(numbers.encoder.blocks, start.placed, run) };
    // What the decoder's blocks look at: the same for every word that they write.
    const memory = Object.values(numbers.blocks).map((one) => keysAndValues(parts, one.cross_attention, made.out));
    return { ...made, memory };
  }

  function decode(numbers, parts, tgt, memory, src) {
    const start = placed(parts, tgt, numbers.tokens, numbers.positions);
    const selfMask = parts.combine_masks(parts.causal_mask(tgt.length), parts.padding_mask(tgt));
    const seen = parts.padding_mask(src);
    const memoryMask = tgt.map(() => seen);
    const run = (layers, y, which) => decoderBlock(parts, layers, y, memory[which], selfMask, memoryMask);
    const made = { ...start, ...through(numbers.blocks, start.placed, run) };
    return { ...made, logits: linear(made.out, numbers.unembed) }; // (T_t, words)
  }

  /* The most probable next word again and again. steps: the log-probabilities of all words, for each word written. */
  function translate(numbers, parts, src) {
    const encoder = encode(numbers, parts, src);
    const ids = [BOS], steps = [];
    let decoder;
    do {
      decoder = decode(numbers, parts, ids, encoder.memory, src);
      steps.push(logSoftmax(decoder.logits.at(-1)));
      ids.push(steps.at(-1).indexOf(Math.max(...steps.at(-1))));
    } while (ids.at(-1) !== EOS && steps.length < MAX_LEN - 1);
    return { src, ids, steps, encoder, decoder };
  }

  /* The surprise of a sentence's true words, each with the true words before it given: their sum in nats. */
  function loss(numbers, parts, { src, tgtIn, tgtOut }) {
    const { logits } = decode(numbers, parts, tgtIn, encode(numbers, parts, src).memory, src);
    const words = tgtOut.filter((id) => id !== PAD).length;
    let nats = 0;
    tgtOut.forEach((id, t) => (nats -= id === PAD ? 0 : logSoftmax(logits[t])[id]));
    return { nats, words };
  }

  // Numbers and words.

  /* Sines and cosines: a row for each place. */
  function sinusoidalPositions(length, width) {
    return Array.from({ length }, (_, t) =>
      Float64Array.from({ length: width }, (_, i) => {
        const angle = t / 10000 ** ((i - (i % 2)) / width);
        return i % 2 ? Math.cos(angle) : Math.sin(angle);
      }),
    );
  }

  /* A float16 as two bytes hold it: sign, 5 bits of exponent, 10 bits of fraction. */
  function half(bits) {
    const exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const size = exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24;
    return bits & 0x8000 ? -size : size;
  }

  /* The numbers of a safetensors file in base64, as an object that is nested like their names: a matrix is a list of
     rows. The file is a length, a table of contents in JSON, and the numbers one after the other. */
  function numbersOf(base64) {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const start = 8 + Number(view.getBigUint64(0, true));
    const contents = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
    const numbers = {};
    for (const [name, { shape, data_offsets: [from, to] }] of Object.entries(contents)) {
      const flat = Float64Array.from({ length: (to - from) / 2 }, (_, i) =>
        half(view.getUint16(start + from + 2 * i, true)),
      );
      const [height, width] = shape;
      const rows = () => Array.from({ length: height }, (_, r) => flat.subarray(r * width, (r + 1) * width));
      const value = shape.length === 1 ? flat : rows();
      const path = name.split("."), last = path.pop();
      path.reduce((place, key) => (place[key] ??= {}), numbers)[last] = value;
    }
    numbers.positions = sinusoidalPositions(MAX_LEN, numbers.tokens.weight[0].length);
    return numbers;
  }

  /* Ids up to a length, filled with padding; as they are if they are longer. */
  const padded = (ids, length) => ids.concat(Array(Math.max(0, length - ids.length)).fill(PAD));

  /* Pairs of sentences as a batch: all of one length, as in training. */
  function batchOf(pairs, english, french) {
    const rows = pairs.map(([source, target]) => [
      source.split(" ").map((word) => english.indexOf(word)),
      target.split(" ").map((word) => french.indexOf(word)),
    ]);
    const longest = [0, 1].map((side) => Math.max(...rows.map((row) => row[side].length)));
    return rows.map(([source, target]) => ({
      src: padded(source, longest[0]),
      tgtIn: padded([BOS, ...target], longest[1] + 1),
      tgtOut: padded([...target, EOS], longest[1] + 1),
    }));
  }

  return { PAD, BOS, EOS, MAX_LEN, PARTS, translate, loss, numbersOf, padded, batchOf, softmax };
})();
