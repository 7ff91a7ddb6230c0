// The page of a comparison of two runs.
const report = index.report;
const side = (name, s, origin) => h("div", {}, h("dt", {}, name), h("dd", {}, h("b", {}, s.name), h("small", {}, " " + origin), s.noTraces && h("p", {class: "notice"}, "Causes are unknown without its traces: " + s.noTraces + ".")));
const checkWords = c => [h("b", {}, c.claim ? c.title || c.claim : c.flow), " ", h("small", {}, [c.claim || c.lab, c.settingA && c.settingA + (c.settingB ? " > " + c.settingB : ""), c.what, c.level !== "model" && c.level].filter(Boolean).join(" · "))];
const stepWords = s => s ? ["step " + s.n + ", " + s.place + ": " + s.text, s.rule && h("code", {}, s.rule), s.from && h("small", {}, " from " + s.from)] : "its trace has ended";

// outcome is what a check came to on one side, and the step at which that side's trace
// goes its own way.
function outcome(name, o, s, g) {
  return h("section", {class: "side"}, h("h3", {}, name, " ", verdict(o.got, o.reason)),
    h("p", {class: "expect"}, o.expect ? "expected " + o.expect + ": " + (o.pass ? "as expected" : "not as expected") : "the documents are silent"),
    o.summary && h("p", {}, o.summary), (g.stepA || g.stepB) && h("p", {class: "parts"}, h("span", {class: "lab"}, "parts"), " ", stepWords(s)), command(o.command));
}

// traceSide shows a trace and marks the step at which it parts from the other.
async function traceSide(name, at, s) {
  if (!at) return h("section", {class: "side"}, h("h3", {}, name), h("p", {class: "notice"}, "There is no trace."));
  const view = await traceView(at, {noCommand: true});
  const li = s && $('.step[data-n="' + s.n + '"]', view);
  if (li) { li.classList.add("parted"); $(".s-head", li).append(h("span", {class: "parts"}, "parts here")); }
  return h("section", {class: "side"}, h("h3", {}, name), view);
}

function groupView(g, i) {
  const both = h("div", {class: "sides traces"});
  const traces = (g.traceA || g.traceB) && h("details", {class: "fold", ontoggle: async e => {
    if (!e.currentTarget.open || both.childElementCount) return;
    try { both.append(await traceSide("A", g.traceA, g.stepA), await traceSide("B", g.traceB, g.stepB)); } catch (x) { both.append(failure(x)); }
  }}, h("summary", {}, "both traces of the first check, side by side"), both);
  const some = g.changes.slice(0, 5), rest = g.changes.slice(5);
  const list = cs => h("ul", {class: "checks"}, cs.map(c => h("li", {}, checkWords(c))));
  return h("article", {class: "group k-" + g.kind, id: "g" + (i + 1)}, h("h2", {}, h("a", {href: "#g" + (i + 1)}, i + 1 + ". "), g.head),
    h("div", {class: "sides"}, outcome("A", g.a, g.stepA, g), outcome("B", g.b, g.stepB, g)), traces, list(some),
    rest.length > 0 && h("details", {class: "fold"}, h("summary", {}, rest.length + " more"), list(rest)));
}

const alone = (title, cs) => cs && cs.length > 0 && h("details", {class: "fold"}, h("summary", {}, cs.length + (cs.length === 1 ? " check" : " checks") + title), h("ul", {class: "checks"}, cs.map(c => h("li", {}, checkWords(c)))));

$("#main").append(h("h2", {class: "flowtitle"}, index.counts),
  h("dl", {class: "facts"}, side("A", report.a, index.originA), side("B", report.b, index.originB),
    report.files && h("div", {}, h("dt", {}, "changed"), h("dd", {}, report.files.join(", "))),
    (index.pairs || []).length > 0 && h("div", {}, h("dt", {}, "compared"), h("dd", {}, h("details", {}, h("summary", {}, index.pairs.length + (index.pairs.length === 1 ? " pair of settings" : " pairs of settings")), h("ul", {}, index.pairs.map(x => h("li", {}, h("code", {}, x)))))))),
  (report.inputs || []).length > 0 && h("table", {class: "inputs"}, h("thead", {}, h("tr", {}, ["differs", "A", "B", "pairs of settings"].map(x => h("th", {scope: "col"}, x)))),
    h("tbody", {}, report.inputs.map(x => h("tr", {}, h("th", {scope: "row"}, x.what), h("td", {}, x.a || "none"), h("td", {}, x.b || "none"), h("td", {}, x.pairs))))),
  ...(index.groups || []).map(groupView), alone(" that only A has", report.onlyA) || "", alone(" that only B has", report.onlyB) || "");
document.documentElement.dataset.ready = "";
document.addEventListener("keydown", e => { if (e.key === "t" && !typing(e)) toggleTheme(); });
