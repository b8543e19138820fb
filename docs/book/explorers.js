// Explorers: a move of a control shows another of the pictures that were drawn when the site was made. They lie in a
// script beside the page (helpers/authoring/frames.py says how they are packed), fetched when an explorer comes near.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(plain).text());
}

function fetched(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${name}.js`;
    script.onload = () => resolve(unpacked(window.explorers[name]));
    script.onerror = () => reject(new Error(`${script.src} is missing`));
    document.head.append(script);
  });
}

function explorer(box) {
  const controls = [...box.querySelectorAll("input:enabled, select:enabled")];
  const [shown, said] = [box.querySelector(".shown"), box.querySelector(".said")];
  const image = shown.querySelector("img");
  const sizes = controls.map((one) => one.options?.length ?? (one.type === "checkbox" ? 2 : +one.max + 1));
  const places = () => controls.map((one) => one.selectedIndex ?? (one.type === "checkbox" ? +one.checked : +one.value));
  const number = (places) => places.reduce((sum, place, i) => sum * sizes[i] + place, 0);
  let loading, saying, ahead;
  const load = () => (loading ??= fetched(box.id));

  function drawn({ pieces, frames }, state) {
    let at = 0;
    return frames[state].map((step) => pieces[(at += step)]).join("");
  }
  const address = (data, state) => `data:image/svg+xml,${encodeURIComponent(drawn(data, state))}`;

  // The browser reads the pictures to which the next move can lead, and has them ready.
  function lookAhead(data) {
    const here = places();
    const next = here.flatMap((place, i) => [here.with(i, place - 1), here.with(i, place + 1)]);
    const inside = next.filter((one) => one.every((place, i) => place >= 0 && place < sizes[i]));
    ahead = inside.map((one) => Object.assign(new Image(), { src: address(data, number(one)) }));
  }

  async function show() {
    const data = await load();
    const state = number(places());
    if (image) {
      image.onload = () => setTimeout(lookAhead, 0, data); // after it is painted
      image.src = address(data, state);
      image.alt = data.alts[state];
    } else {
      shown.style.minHeight = `${shown.offsetHeight}px`; // the page below it stays where it is
      shown.innerHTML = drawn(data, state);
    }
    box.dataset.state = state;
    clearTimeout(saying); // a screen reader says the picture where the control came to rest
    saying = setTimeout(() => (said.textContent = image ? image.alt : shown.innerText), 600);
  }

  image?.parentElement.addEventListener("click", async (event) => {
    if (!("state" in box.dataset)) return; // the first picture is a file
    event.preventDefault();
    const svg = drawn(await load(), box.dataset.state);
    location.href = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  });

  box.addEventListener("input", (event) => {
    const one = event.target;
    if (one.type === "range") {
      const label = JSON.parse(one.dataset.labels)[one.value];
      one.setAttribute("aria-valuetext", label);
      one.nextElementSibling.textContent = label;
    }
    show();
  });
  for (const event of ["pointerenter", "focusin"]) box.addEventListener(event, load, { once: true });
  return () => load().then((data) => image && !ahead && lookAhead(data));
}

addEventListener("DOMContentLoaded", () => {
  const loads = new Map([...document.querySelectorAll(".explorer")].map((box) => [box, explorer(box)]));
  const near = new IntersectionObserver(
    (seen) => {
      for (const { target } of seen.filter((one) => one.isIntersecting)) {
        near.unobserve(target);
        loads.get(target)();
      }
    },
    { rootMargin: "400px" },
  );
  loads.forEach((load, box) => near.observe(box));
});
