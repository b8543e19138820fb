/* The home page's translator: a typed sentence runs through the map, and each box shows its activations.

   The map stands in the page, with links to the lessons for readers without scripts. Here its boxes become buttons. */
"use strict";

addEventListener("DOMContentLoaded", () => {
  const root = document.querySelector(".machine");
  const src = `${root.dataset.folder}/numbers.js`;
  const numbers = element("script", { src, onload: () => livePage(root, NUMBERS) });
  document.head.append(numbers); // half a megabyte, after all else
});

/* How many letters to change, to add or to leave out on the way from one word to the other. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1])));
    }
    row = next;
  }
  return row[b.length];
}

/* Up to three known words: those that begin so, then those that differ least, in half of their letters at most. */
function nearWords(word, known) {
  const far = (other) => distance(word, other);
  const like = known.filter((other) => far(other) <= Math.max(word.length, other.length) / 2);
  const begun = known.filter((other) => other.startsWith(word));
  return [...new Set([...begun, ...like.sort((a, b) => far(a) - far(b))])].slice(0, 3);
}

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}'’]+/gu) ?? [];

/* Boxes of one kind, such as all sums, have the same mistakes. */
const kindOf = (part) => part.replace(/^norm\d/, "norm1").replace(/2$/, "");

/* root: the element with the map in it. held: weights, words and sentences, as numbers.js has them. */
function livePage(root, held) {
  const numbers = machine.numbersOf(held.weights);
  const { english, french } = held;
  const known = english.slice(1); // without padding
  const batch = machine.batchOf(held.pairs, english, french);
  const chosen = { part: "cross", place: "cross", block: 1, head: 0, step: 0, mistake: "" };
  const measured = new Map(); // mistake -> {nats, exact}, null while it is measured
  let words = [], right, now; // the sentence; the untouched run and the one with the mistake

  // What stays on the page.

  const sentence = element("input", {
    id: "machine-sentence", type: "text", value: held.examples[0], "aria-describedby": "machine-hint",
    autocomplete: "off", autocapitalize: "off", spellcheck: "false",
  });
  const hint = element("div", { id: "machine-hint", "aria-live": "polite" });
  const status = element("p", { class: "machine-aside", role: "status" });
  const output = element("div", { class: "machine-output", role: "group", "aria-label": "The translation" });
  const glance = element("div", { class: "machine-glance" });
  const untouched = element("p", { class: "machine-untouched" });
  const heading = element("p", { class: "machine-label" });
  const none = element("option", { value: "" }, "none: the translator as it was trained");
  const mistakes = element("select", { id: "machine-mistake", onchange: () => putIn(mistakes.value) }, none);
  const scale = element("div"), losses = element("div", { "aria-live": "polite" });
  const title = element("h3", { tabindex: "-1" });
  const says = element("p");
  const choices = element("div", { class: "machine-choices" });
  const pictures = element("div", { class: "machine-pictures" });
  const own = element("div", { class: "machine-own" });
  const lesson = element("a");
  const inspector = element(
    "section", { class: "machine-inspector", id: "machine-inspector", "aria-label": "The open box" },
    title, says, choices, pictures, own, element("p", {}, lesson),
  );

  const boxes = new Map(); // part -> {box, thumb, href, lesson}
  for (const link of root.querySelectorAll("a.box")) {
    const { part, lesson } = link.dataset;
    const box = button("", () => choose(part), { class: "box", "data-part": part, "aria-controls": inspector.id });
    const thumb = element("canvas", { "aria-hidden": "true" });
    box.append(...link.childNodes, thumb);
    boxes.set(part, { box, thumb, href: link.getAttribute("href"), lesson });
    link.replaceWith(box);
  }

  for (const [name, mistake] of Object.entries(MISTAKES)) {
    const label = boxes.get(mistake.box).lesson;
    const group = [...mistakes.children].find((one) => one.label === label) ?? element("optgroup", { label });
    group.append(element("option", { value: name }, mistake.name));
    mistakes.append(group);
  }

  const selects = {};
  for (const [name, label, options] of [
    ["place", "Head of", Object.entries(PLACES)],
    ["block", "block", [[0, "1"], [1, "2"]]],
    ["head", "head", [[0, "1"], [1, "2"], [2, "3"], [3, "4"]]],
  ]) {
    const id = `machine-${name}`;
    const change = () => {
      chosen[name] = name === "place" ? selects.place.value : Number(selects[name].value);
      show();
    };
    selects[name] = element(
      "select", { id, onchange: change }, ...options.map(([value, text]) => element("option", { value }, text)),
    );
    choices.append(element("span", {}, element("label", { for: id }, label), selects[name]));
  }

  // What is seen first: the sentence, its translation, and what the translation attends to.
  root.prepend(
    element(
      "div", { class: "machine-first" },
      element(
        "div", {},
        element(
          "form", { class: "machine-input", onsubmit: (event) => event.preventDefault() },
          element("label", { for: sentence.id }, "Type an English sentence for the translator"), sentence, hint,
        ),
        heading, output, untouched, status,
      ),
      glance,
      element("div", {}, examples(), wordList()),
    ),
    element(
      "div", { class: "machine-break" },
      element("div", {}, element("label", { for: mistakes.id }, "A known mistake in it"), mistakes), meter(),
    ),
  );

  function examples() {
    const any = () => use(held.pairs[Math.floor(Math.random() * held.pairs.length)][0]);
    return element(
      "div", { class: "machine-examples", role: "group", "aria-label": "Examples" },
      ...held.examples.map((text) => button(text, () => use(text))), button("another one, unseen in training", any),
    );
  }

  function meter() {
    const what = `Loss on ${batch.length} unseen sentences, each word predicted from the true words before it`;
    return element("div", { class: "machine-meter" }, element("p", {}, what), scale, losses);
  }

  function wordList() {
    const adding = (word) => button(word, () => use(`${sentence.value.trim()} ${word}`.trim()));
    const lines = Object.entries(held.kinds).map(([kind, list]) => element("p", {}, `${kind}: `, ...list.map(adding)));
    const name = element("summary", {}, `The ${known.length} words that it knows`);
    return element("details", { class: "machine-known" }, name, element("p", {}, held.pattern), ...lines);
  }

  // What happens.

  function use(text) {
    sentence.value = text;
    read();
  }

  /* Take the sentence if all of its words are known; else say which is not, and leave the last translation. */
  function read() {
    const typed = wordsOf(sentence.value);
    const strange = typed.find((word) => !known.includes(word));
    hint.replaceChildren();
    heading.textContent = `In French, word by word: still of “${words.join(" ")}”`;
    if (!typed.length) hint.append("Type a sentence of words that it knows, or take one of these.");
    else if (typed.length > held.longest) {
      hint.append(`These are ${typed.length} words; the translator takes up to ${held.longest}.`);
    } else if (strange) hint.append(...unknown(strange, /\S$/.test(sentence.value) && strange === typed.at(-1)));
    else {
      words = typed;
      heading.textContent = "In French, word by word";
      run();
    }
  }

  /* Words near an unknown one, to click; typing: it may not be finished yet. */
  function unknown(word, typing) {
    const swap = (other) => {
      use(wordsOf(sentence.value).map((one) => (one === word ? other : one)).join(" "));
      sentence.focus();
    };
    const near = nearWords(word, known), offers = near.map((other) => button(other, () => swap(other)));
    if (typing && near[0]?.startsWith(word)) return [`“${word}” could become: `, ...offers];
    const next = near.length ? "Similar words: " : "Below are the words that it knows.";
    const named = word.length > 30 ? `${word.slice(0, 30)}…` : word;
    return [`The translator doesn’t know “${named}”. ${next}`, ...offers];
  }

  const partsWith = (mistake) => ({ ...machine.PARTS, ...MISTAKES[mistake]?.parts });

  function translated(mistake) {
    const ids = words.map((word) => english.indexOf(word));
    const src = MISTAKES[mistake]?.padded ? machine.padded(ids, batch[0].src.length) : ids;
    const made = machine.translate(numbers, partsWith(mistake), src);
    const target = made.ids.map((id) => french[id]); // <bos> first
    return { ...made, source: src.map((id) => english[id]), target: target.slice(0, -1), written: target.slice(1) };
  }

  function run() {
    const before = now?.written ?? [];
    right = translated("");
    now = chosen.mistake ? translated(chosen.mistake) : right;
    chosen.step = Math.min(chosen.step, now.steps.length - 1);
    showOutput(before);
    show();
  }

  function putIn(mistake) {
    chosen.mistake = mistakes.value = mistake;
    const { box: at, place } = MISTAKES[mistake] ?? {};
    chosen.place = place ?? chosen.place;
    for (const [part, { box }] of boxes) box.classList.toggle("broken", part === at);
    if (at && at !== own.dataset.kind) choose(at);
    run();
    showLoss();
  }

  /* Open a box, below its row of the map. What was clicked stays where it is on the screen. */
  function choose(part) {
    const active = document.activeElement, before = active.getBoundingClientRect().top;
    chosen.part = part;
    if (part in PLACES) chosen.place = part;
    show();
    const row = boxes.get(part).box.closest(".row");
    if (row.nextElementSibling !== inspector) row.after(inspector);
    scrollBy({ top: active.getBoundingClientRect().top - before, behavior: "instant" });
  }

  function open({ place, head }) {
    Object.assign(chosen, { place, head });
    choose("softmax");
    title.focus();
  }

  /* The loss and the sentences that come out word for word; one sentence at a time, so that the page stays awake. */
  async function measure(mistake) {
    const parts = partsWith(mistake);
    let nats = 0, count = 0, exact = 0;
    measured.set(mistake, null);
    for (const pair of batch) {
      await new Promise((next) => setTimeout(next));
      if (mistake && mistake !== chosen.mistake) return measured.delete(mistake); // nobody waits for it any more
      const one = machine.loss(numbers, parts, pair);
      nats += one.nats;
      count += one.words;
      const wrote = machine.translate(numbers, parts, pair.src).ids.slice(1);
      exact += wrote.join() === pair.tgtOut.filter((id) => id !== machine.PAD).join();
    }
    measured.set(mistake, { nats: nats / count, exact });
    showLoss();
  }

  // What is shown.

  function showOutput(before) {
    const french = (run) => run.written.filter((word) => word !== "<eos>").join(" ") || "nothing";
    const first = now.written.findIndex((word, i) => word !== before[i]);
    const chip = (word, i) => {
      const names = [word === right.written[i] ? "" : "wrong", first >= 0 && i >= first ? "fresh" : ""].join(" ");
      const chip = button("", () => takeStep(i), { class: names, "aria-pressed": String(i === chosen.step) });
      chip.style.setProperty("--i", i - first);
      const sure = percent(Math.exp(now.steps[i][now.ids[i + 1]]));
      chip.append(element("span", { lang: "fr" }, word), element("small", {}, sure));
      return chip;
    };
    output.replaceChildren(...now.written.map(chip));
    const { name, padded } = MISTAKES[chosen.mistake] ?? {}, same = french(now) === french(right);
    const look = "The translation is the same as without the mistake. Look at the loss.";
    const filled = padded ? " (The English sentence is padded with <pad>, as in a batch.)" : "";
    const compared = `${same ? look : `Without the mistake: ${french(right)}`}${filled}`;
    const sure = Math.min(...now.steps.map((step, i) => Math.exp(step[now.ids[i + 1]])));
    const guess =
      sure < 0.9 ? "It guesses where a word has less than 90%, because it was not trained on such sentences." : "";
    untouched.textContent = name ? compared : guess;
    const more = name ? `With the mistake: ${name}. ${compared}` : guess;
    status.textContent = `${words.join(" ")}: ${french(now)}. ${more}`;
  }

  function takeStep(step) {
    chosen.step = step;
    [...output.children].forEach((one, i) => one.setAttribute("aria-pressed", String(i === step)));
    choose(["linear", "self", "cross"].includes(chosen.part) ? chosen.part : "loss");
  }

  /* The map and the open box. */
  function show() {
    if (!now) return;
    const colors = colorsOf(root), all = views(now, chosen, french);
    for (const [part, { box, thumb }] of boxes) {
      thumbnail(thumb, all[part], colors);
      box.setAttribute("aria-pressed", String(part === chosen.part));
    }
    for (const [row, list] of [["encoder", now.source], ["decoder", now.target]]) {
      root.querySelector(`.${row} .words`).replaceChildren(...list.map((word) => element("li", {}, word)));
    }
    const opened = `one head, opened: ${PLACES[chosen.place]}, block ${chosen.block + 1}, head ${chosen.head + 1}`;
    root.querySelector(".opened .frame-name").textContent = opened;

    const view = all[chosen.part], { href, lesson: where } = boxes.get(chosen.part);
    title.textContent = view.title;
    const { box, name } = MISTAKES[chosen.mistake] ?? {};
    says.textContent = box === kindOf(chosen.part) ? `${view.says} Here it has a mistake: ${name}.` : view.says;
    lesson.textContent = `You write it in ${where}`;
    lesson.href = href;
    const inHead = IN_HEAD.includes(chosen.part);
    const inBlock = inHead || IN_BLOCK.includes(chosen.part);
    const asked = { place: inHead, block: inBlock, head: inHead && chosen.part !== "heads" };
    for (const [name, select] of Object.entries(selects)) {
      select.value = chosen[name];
      select.parentElement.hidden = !asked[name];
    }
    glance.replaceChildren(DRAW.grid(glanceView(now), { chosen, colors }));
    pictures.replaceChildren(...view.pictures.map((one) => DRAW[one.kind](one, { chosen, colors, open })));
    for (const one of pictures.querySelectorAll(".scrolls")) one.tabIndex = one.scrollWidth > one.clientWidth ? 0 : -1;
    showMistakes();
  }

  /* Buttons for the mistakes of the open box; they stay while it does, and keep a keyboard's focus. */
  function showMistakes() {
    const kind = kindOf(chosen.part);
    if (own.dataset.kind !== kind) {
      const fitting = Object.entries(MISTAKES).filter(([, mistake]) => mistake.box === kind);
      const toggle = (name) => putIn(chosen.mistake === name ? "" : name);
      const switches = fitting.map(([name, one]) => button(one.name, () => toggle(name), { "data-mistake": name }));
      own.dataset.kind = kind;
      own.replaceChildren(...(fitting.length ? ["Put a known mistake in: ", ...switches] : []));
    }
    for (const one of own.children) one.setAttribute("aria-pressed", String(one.dataset.mistake === chosen.mistake));
  }

  function showLoss() {
    const usual = measured.get(""), found = measured.get(chosen.mistake);
    if (found === undefined) measure(chosen.mistake);
    const result = (one) => `${inNats(one.nats)} nats per word, ${one.exact} of ${batch.length} translated exactly`;
    const line = (label, one, name = "", more = "") =>
      element("p", { class: name }, `${label}: `, one ? element("b", {}, result(one) + more) : "being measured …");
    const lines = [line("As trained", usual)], marks = usual ? [[usual.nats, ""]] : [];
    if (chosen.mistake) {
      const times = found && usual ? found.nats / usual.nats : 1;
      const factor = times < 10 ? times.toFixed(1) : Math.round(times).toLocaleString("en");
      lines.push(line("With the mistake", found, "broken", times > 1.01 ? `: ${factor} times the loss` : ""));
      if (found) marks.push([found.nats, "broken"]);
    }
    scale.replaceChildren(lossScale(marks));
    losses.replaceChildren(...lines);
  }

  let waiting;
  sentence.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(read, 150);
  });
  new MutationObserver(show).observe(document.body, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  addEventListener("resize", show);
  read();
  choose("cross");
  showLoss();
  root.classList.add("awake");
}
