// For keyboards and screen readers: what scrolls sideways can be reached, and what the generators name badly or not at all.
function reach() {
  for (const one of document.querySelectorAll("pre, .table-wrapper")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
}
addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll("p.caption[role=heading]")) caption.ariaLevel = "2";
  for (const fold of document.querySelectorAll("details.hide > summary")) fold.removeAttribute("aria-label");
  reach();
});
addEventListener("resize", reach);
document.addEventListener("toggle", reach, true);
