// For keyboards and screen readers: what scrolls sideways can be reached, and what the generators name badly or not at all.
function reach() {
  for (const one of document.querySelectorAll("pre, .table-wrapper, p:has(> img:only-child)")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
}
function look() {
  const wide = "figure, pre, .table-wrapper, .math-wrapper, .scrolls, p:has(> img:only-child)";
  for (const one of document.querySelectorAll(wide)) {
    one.classList.toggle("more", one.scrollLeft + one.clientWidth < one.scrollWidth - 2);
  }
}
addEventListener("scroll", look, true);
addEventListener("load", look, true);
addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll("p.caption[role=heading]")) caption.ariaLevel = "2";
  for (const fold of document.querySelectorAll("details.hide > summary")) fold.removeAttribute("aria-label");
  reach();
});
addEventListener("resize", () => {
  reach();
  look();
});
// From disk no script may read another page: what the search finds has no words beside it there.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
document.addEventListener("toggle", reach, true);
// On paper nothing can be unfolded: what is folded opens, and closes again afterwards.
const folded = "article details:not([open])";
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll(folded)) fold.open = fold.dataset.printed = true;
});
addEventListener("afterprint", () => {
  for (const fold of document.querySelectorAll("details[data-printed]")) {
    fold.open = false;
    delete fold.dataset.printed;
  }
});
