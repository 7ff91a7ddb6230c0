// The search of the first page: hides what does not have all words.
"use strict";
const box = document.getElementById("q");
const items = [...document.querySelectorAll("[data-words]")].map(el => [el, el.dataset.words.toLowerCase()]);
const areas = [...document.querySelectorAll("section.area")];
const found = document.getElementById("found");
function search() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let n = 0;
  for (const [el, text] of items) { el.hidden = !words.every(w => text.includes(w)); if (!el.hidden) n++; }
  for (const a of areas) a.hidden = !a.querySelector("[data-words]:not([hidden])");
  found.textContent = words.length ? n + (n === 1 ? " page" : " pages") : "";
  history.replaceState(null, "", words.length ? "?q=" + encodeURIComponent(box.value) : location.pathname);
}
box.value = new URLSearchParams(location.search).get("q") || "";
box.addEventListener("input", search);
if (box.value) search();
