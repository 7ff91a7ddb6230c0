// The page of one trace.
(async () => {
  const main = $("#main");
  try {
    const t = await traceItem(index.trace);
    main.append(h("h2", {class: "flowtitle"}, t.flow.from, h("span", {}, " → "), t.flow.to, h("small", {}, " " + t.flow.protocol)), await traceView(index.trace));
  } catch (e) { main.append(failure(e)); }
  document.documentElement.dataset.ready = "";
})();
document.addEventListener("keydown", e => { if (e.key === "t" && !typing(e)) toggleTheme(); });
