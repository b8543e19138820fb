/* Pictures of numbers as parts of a page: strips, grids and bars (see views.js), a box's small one, and the loss. */
"use strict";

/* An element: attributes by name, a function for "on...", true or false for what is there or not. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const button = (text, onclick, attributes = {}) => element("button", { type: "button", onclick, ...attributes }, text);

/* The page's colors as [red, green, blue]; they change with the theme. */
function colorsOf(root) {
  const style = getComputedStyle(root);
  const read = (name) => {
    const hex = style.getPropertyValue(`--${name}`).trim();
    return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  };
  return Object.fromEntries(["ground", "weight", "signed", "below", "Q", "K", "V"].map((name) => [name, read(name)]));
}

const largestOf = (row) => row.reduce((top, value) => Math.max(top, Math.abs(value)), 1e-9);
const largest = (values) => Math.max(...values.map(largestOf));

/* A pixel for each number: nothing at 0, the hue above it, another one below. */
function paint(canvas, values, hue, colors, top = largest(values)) {
  canvas.width = Math.max(...values.map((row) => row.length));
  canvas.height = values.length;
  const pixels = new ImageData(canvas.width, canvas.height);
  values.forEach((row, y) =>
    row.forEach((value, x) => {
      const color = value < 0 ? colors.below : colors[hue];
      pixels.data.set([...color, (255 * Math.abs(value)) / top], 4 * (y * canvas.width + x));
    }),
  );
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

function luminance(color) {
  const linear = color.map((part) => (part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

/* A cell's background, and black or white letters, whichever are easier to read. */
function cellStyle(share, hue, ground) {
  const color = ground.map((part, i) => Math.round(part + share * (hue[i] - part)));
  return `background:rgb(${color});color:${luminance(color) > 0.179 ? "#000" : "#fff"}`;
}

/* What scrolls sideways can be reached by keyboard. */
function scrolls(name, table) {
  return element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": name }, table);
}

const DRAW = {
  /* chosen.step: the row of the decoder that is marked. open: what to do where a head is opened. */
  grid(picture, { chosen, colors, open }) {
    const { values, labels, columns, hue, caption, digits, mask, opens, steps } = picture;
    const top = hue === "weight" ? 1 : largest(values);
    const text = (value) => {
      if (mask) return value ? "1" : "";
      return digits ? value.toFixed(digits) : value >= 0.005 ? (100 * value).toFixed(0) : "";
    };
    const cell = (value) => {
      if (mask && !value) return element("td", { class: "unseen" });
      const share = mask ? 0 : Math.min(1, Math.abs(value) / top);
      const style = cellStyle(share, value < 0 ? colors.below : colors[hue], colors.ground);
      return element("td", { style }, text(value));
    };
    const row = (numbers, t) =>
      element(
        "tr",
        { class: steps && t === chosen.step ? "now" : "" },
        element("th", { scope: "row" }, labels[t]),
        ...Array.from(numbers, cell),
      );
    const head = columns.map((word) => element("th", { scope: "col" }, element("span", {}, word)));
    const name = element("caption", {}, caption);
    if (opens) name.append(" ", button("open", () => open(opens), { "aria-label": `open ${caption}` }));
    const table = element(
      "table",
      { class: digits ? "grid wide" : "grid" },
      name,
      element("thead", {}, element("tr", {}, element("td"), ...head)),
      element("tbody", {}, ...values.map(row)),
    );
    return scrolls(caption, table);
  },

  strips({ values, labels, hue, caption }, { colors }) {
    const top = largest(values);
    const strip = (word, t) => {
      const canvas = paint(element("canvas", { "aria-hidden": "true" }), [values[t]], hue, colors, top);
      return element("div", { class: "strip" }, element("span", {}, word), canvas);
    };
    const row = (word, t) => {
      const cells = Array.from(values[t], (value) => element("td", {}, value.toFixed(2)));
      return element("tr", {}, element("th", { scope: "row" }, word), ...cells);
    };
    const numbers = element("details", {}, element("summary", {}, "The numbers"));
    const write = () => numbers.append(scrolls(caption, element("table", { class: "plain" }, ...labels.map(row))));
    numbers.addEventListener("toggle", write, { once: true });
    const words = element("figcaption", {}, `${caption}; the strongest color is ±${top.toFixed(2)}`);
    return element("figure", {}, words, ...labels.map(strip), numbers);
  },

  bars({ values, labels, caption, shown, top, now }) {
    top ??= Math.max(1e-9, ...values);
    const row = (word, i) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, word),
        element("td", {}, element("span", { class: "bar", style: `width:${(100 * Math.max(0, values[i])) / top}%` })),
        element("td", {}, shown(values[i])),
      );
    const body = element("tbody", {}, ...labels.map(row));
    return element("table", { class: now ? "bars now" : "bars" }, element("caption", {}, caption), body);
  },
};

/* A box's small picture: what its view shows first, or its bars side by side. */
function thumbnail(canvas, view, colors) {
  const [first] = view.pictures;
  const values = view.thumb ?? (first.kind === "bars" ? view.pictures.map((picture) => picture.values) : first.values);
  paint(canvas, values, first.hue ?? "weight", colors);
}

function inNats(loss) {
  return loss.toFixed(loss >= 0.1 ? 2 : loss >= 0.01 ? 3 : loss >= 0.001 ? 4 : 5);
}

/* A scale from 0.0001 to 30 nats, on which each tick is ten times the one before. marks: [nats, class]. */
function lossScale(marks) {
  const at = (nats) => `left:${(100 * Math.log10(Math.min(30, Math.max(1e-4, nats)) / 1e-4)) / Math.log10(30 / 1e-4)}%`;
  const tick = (nats) => element("span", { class: "tick", style: at(nats) }, String(nats));
  const mark = ([nats, name]) => element("span", { class: `mark ${name}`, style: at(nats) });
  const ticks = [0.0001, 0.001, 0.01, 0.1, 1, 10].map(tick);
  return element("div", { class: "scale", "aria-hidden": "true" }, ...ticks, ...marks.map(mark));
}
