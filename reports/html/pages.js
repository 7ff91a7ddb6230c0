// The parts of the report besides the matrix: systems, checks without a lab,
// contradictions and coverage, and how the filters work on them. Long lists are
// made from the index when they are opened.
const outMark = {agrees: "=", differs: "≠", own: "·", disputed: "⇄", unknown: "?", "not-checked": "∅", error: "!", unchecked: "–"};
const outShort = {agrees: "as documented", differs: "differs", own: "own verdict", disputed: "differs, another source agrees", unknown: "unknown", "not-checked": "not reached by a packet", error: "failed to run", unchecked: "not checked here"};
const docGlyph = {works: "✓", fails: "✕", conditional: "◐", disputed: "⇄", silent: "·"};
const docSays = {works: "it works", fails: "it does not work", conditional: "under a condition", disputed: "sources contradict each other", silent: "nothing"};
const kindWords = {flow: "flows", resolve: "names", wire: "frames", hns: "HNS objects", rule: "rules", placement: "placements", resources: "resources", doctor: "doctor", cluster: "e2e"};
const needWords = {cluster: "a cluster with Windows nodes", lab: "a lab or a model that is not there yet", nothing: "nothing: there is nothing to run"};
const enc = s => encodeURIComponent(s).replace(/%2F/g, "/").replace(/%3A/g, ":");
const claimLink = (cl, ...text) => h("a", {href: "#claim=" + enc(cl.id)}, text.length ? text : cl.title);
const netOf = Object.fromEntries((index.settings || []).map(s => [s.design, s.network]));
const areaName = Object.fromEntries((index.areas || []).map(a => [a.id, a.title]));
const staticsBy = new Map();
for (const s of index.statics || []) staticsBy.set(s.c, [...(staticsBy.get(s.c) || []), s]);
const numberOf = new Map((index.claims || []).map((c, i) => [c.id, i]));
const staticsOf = cl => staticsBy.get(numberOf.get(cl.id)) || [];
const scopeOf = (cl, i) => (cl.scopes || [])[i] || {};

// holds reports whether something with a scope may hold under the filters: v
// are versions, n networks ("n:overlay") and designs ("d:NAME").
function holds(s, f) {
  if (f.k8s && s.v && !s.v.split(" ").includes(f.k8s)) return false;
  if (!f.net || !s.n) return true;
  const net = f.net.startsWith("n:") ? f.net.slice(2) : netOf[f.net.slice(2)];
  return s.n.split(" ").some(x => x === f.net || (f.net.startsWith("n:") ? x.startsWith("d:") && netOf[x.slice(2)] === net : x === "n:" + net));
}
// inScope: some documented status or static check of the claim may hold.
function inScope(cl, f) {
  const all = [...(cl.scopes || []), ...staticsOf(cl)];
  return !all.length || all.some(s => holds(s, f));
}
function claimText(cl) {
  return cl.find || "";
}
const says = (text, words) => words.every(w => text.includes(w));
const matches = (cl, f) => (!f.area || cl.area === f.area) && (!f.outcome || cl.outcome === f.outcome) && says(claimText(cl), f.words) && inScope(cl, f);

// --- Systems -------------------------------------------------------------------
const systems = $$("details.system");
const statusList = (cl, f) => (cl.history || []).map((s, i) => holds(scopeOf(cl, i), f) && h("span", {class: "stat"}, h("span", {class: "status st-" + s.status}, s.status), h("small", {}, s.where + (s.says ? ": " + s.says : ""))));
const foundWords = cl => [cl.docs && h("div", {}, h("small", {class: "lab"}, "documents"), Object.keys(docGlyph).filter(k => cl.docs[k]).map(k => h("span", {class: "tally", title: "documents: " + docSays[k]}, h("i", {class: "d-" + k}, docGlyph[k]), " ", n1(cl.docs[k])))),
  cl.got && h("div", {}, h("small", {class: "lab"}, "model"), cl.got.map(g => h("span", {class: "tally"}, h("b", {class: "w-" + g.kind}, g.word), " ", n1(g.n))))];
const n1 = n => h("small", {}, n);
const outcomeChip = o => h("span", {class: "o o-" + o}, outMark[o] + " " + outShort[o]);
function checkedBy(cl) {
  if ((cl.checkedBy || []).length) return cl.checkedBy.map(k => h("span", {class: "by1"}, kindWords[k] || k));
  return h("span", {class: "dim"}, "nothing", cl.needs && cl.needs !== "nothing" && "; needs a " + cl.needs);
}
function fillSystem(d, list, f) {
  const box = $(".fill", d);
  if (!list.length) { box.replaceChildren(h("p", {class: "none"}, "No claim of the ledger is about it" + (+box.dataset.claims ? " under these filters." : "."))); return; }
  box.replaceChildren(h("div", {class: "wide"}, h("table", {class: "list sys"}, h("thead", {}, h("tr", {}, ["Claim", "Documents", "In settings", "Checked by", "Outcome"].map(x => h("th", {scope: "col"}, x)))),
    h("tbody", {}, list.map(cl => h("tr", {}, h("th", {scope: "row"}, claimLink(cl), h("small", {}, areaName[cl.area] || cl.area)), h("td", {}, statusList(cl, f)), h("td", {}, foundWords(cl)), h("td", {}, checkedBy(cl)), h("td", {}, outcomeChip(cl.outcome))))))));
}
function filterSystems(f) {
  let shown = 0;
  for (const d of systems) {
    const all = index.systems[+d.dataset.sys].map(i => index.claims[i]);
    // A search that names the system shows it with all its claims.
    const named = f.words.length && says((d.id.slice(7) + " " + $(".sname", d).textContent + " " + $(".text", d).textContent).toLowerCase(), f.words);
    const list = all.filter(cl => matches(cl, named ? {...f, words: []} : f));
    d.hidden = f.any && !list.length && !(named && !f.area && !f.outcome);
    if (!d.hidden) shown++;
    if (d.open) fillSystem(d, list, f);
    d.refill = () => fillSystem(d, list, f);
  }
  for (const g of $$(".systems")) {
    const none = !$$("details.system", g).some(d => !d.hidden);
    g.hidden = none;
    g.previousElementSibling.hidden = none;
  }
  return [shown, systems.length];
}
for (const d of systems) d.addEventListener("toggle", () => { if (d.open && d.refill) d.refill(); });
for (const b of $$("button[data-open]")) b.addEventListener("click", () => {
  const list = $$("details", $(b.dataset.open)), open = !list.some(d => d.open);
  for (const d of list) d.open = open;
  b.textContent = open ? "close all" : "open all";
});

// --- Static checks --------------------------------------------------------
const folds = $$("#statics details.fold");
const markClass = {agrees: "okmark", disputed: "dismark"};
const markOf = {agrees: "✓", disputed: "⇄"};
const mark = (s, ...text) => h("span", {class: markClass[s.o] || "badmark"}, markOf[s.o] || "≠", text.map(x => " " + x));
const passMark = s => mark(s, s.got);
function fillStatics(d, list) {
  const rule = d.dataset.kind === "rule", by = new Map();
  for (const s of list) {
    const a = index.claims[s.c].area;
    by.set(a, [...(by.get(a) || []), s]);
  }
  const cols = rule ? ["Claim", "What it tells", "On Windows", "Where", "Example"] : ["Claim", "What is tried", "Where", "Came out"];
  $(".fill", d).replaceChildren(h("div", {class: "wide"}, h("table", {class: "list st"}, h("thead", {}, h("tr", {}, cols.map(x => h("th", {scope: "col"}, x)))),
    (index.areas || []).filter(a => by.has(a.id)).map(a => h("tbody", {}, h("tr", {class: "sub"}, h("th", {colspan: cols.length, scope: "rowgroup"}, a.title, " ", h("small", {}, by.get(a.id).length))),
      by.get(a.id).map(s => h("tr", {class: s.o}, h("th", {scope: "row"}, claimLink(index.claims[s.c])), h("td", {}, rule && h("span", {class: "level l-" + s.level}, s.level), " ", s.what),
        rule && h("td", {}, index.effects[s.effect] || s.effect), h("td", {}, s.where), h("td", {}, passMark(s)))))))));
}
function filterStatics(f) {
  let shown = 0;
  for (const d of folds) {
    const list = (index.statics || []).filter(s => s.kind === d.dataset.kind && matchesStatic(s, f));
    shown += list.length;
    d.hidden = f.any && !list.length;
    if (d.open) fillStatics(d, list);
    d.refill = () => fillStatics(d, list);
  }
  return [shown, (index.statics || []).length];
}
function matchesStatic(s, f) {
  const cl = index.claims[s.c];
  return holds(s, f) && (!f.area || cl.area === f.area) && (!f.outcome || cl.outcome === f.outcome) && says(claimText(cl) + " " + s.what.toLowerCase(), f.words);
}
for (const d of folds) d.addEventListener("toggle", () => { if (d.open && d.refill) d.refill(); });

// --- Items that the page has from the beginning -----------------------------------
const items = $$(".fi");
function filterItems(f) {
  const counts = new Map();
  for (const el of items) {
    const cl = el.dataset.id && index.claims[numberOf.get(el.dataset.id)];
    let ok = (!f.area || el.dataset.area === f.area) && (!cl || says(claimText(cl), f.words) && (!f.outcome || cl.outcome === f.outcome) && inScope(cl, f));
    const scoped = $$("[data-v],[data-n]", el);
    for (const x of scoped) x.hidden = !holds(x.dataset, f);
    if (scoped.length && scoped.every(x => x.hidden)) ok = false;
    for (const m of $$("p.model", el)) if ($("a[data-v],a[data-n]", m)) m.hidden = $$("a[data-v],a[data-n]", m).every(x => x.hidden);
    el.hidden = !ok;
    const sec = el.closest("section");
    const c = counts.get(sec) || [0, 0];
    counts.set(sec, [c[0] + ok, c[1] + 1]);
  }
  for (const d of $$("#coverage details.fold")) d.hidden = !$$(".fi", d).some(x => !x.hidden);
  return counts;
}
function filterPages(f) {
  f = {...f, words: f.q.toLowerCase().split(/\s+/).filter(Boolean), any: f.q || f.k8s || f.net || f.area || f.outcome};
  const note = (sec, [n, all]) => { const o = sec && $("output.fcount", sec); if (o) o.textContent = f.any ? n + " of " + all + " under the filters" : ""; };
  note($("#systems"), filterSystems(f));
  note($("#statics"), filterStatics(f));
  for (const [sec, c] of filterItems(f)) note(sec, c);
}

// --- The claim's own page ----------------------------------------------------------
// names marks the names that a rule fills in.
const names = text => text && text.split(/(\{[A-Za-z][A-Za-z0-9-]*\})/).map((x, i) => i % 2 ? h("var", {}, x.slice(1, -1)) : x);

// staticView shows one check without a lab, with its examples.
async function staticView(s, open) {
  const body = h("div", {class: "body"});
  const line = (k, ...v) => v.some(Boolean) && h("div", {}, h("dt", {}, k), h("dd", {}, v));
  const example = (label, text, ok) => text && h("div", {class: "example"}, h("p", {}, label, " ", ok), h("pre", {}, text));
  let filled = false;
  const fill = async () => {
    if (filled) return;
    filled = true;
    try {
      const m = await item(s.more), r = m.rule;
      if (!r) {
        body.append(h("dl", {class: "facts"}, line("tried", m.what), line("expected", m.expect && h("b", {}, m.expect)), line("came out", passMark(s)), line("holds for", s.where), line("evidence", grade(m.grade))), example("It is tried with", m.input) || "", m.summary ? h("p", {class: "sum"}, m.summary) : "", command(m.command) || "");
        return;
      }
      const tells = m.pass ? "" : m.summary;
      body.append(h("dl", {class: "facts"},
        line("looks at", h("b", {}, r.on), r.pods && " (" + r.pods + ")", " ", r.field && h("code", {}, r.field), " ", r.field && r.when), line("unless", r.unless && h("code", {}, r.unless)),
        line("level", h("span", {class: "level l-" + r.level}, r.level)),
        line("effect", index.effects[r.effect] || r.effect), line("tells", names(r.says)), line("write", names(r.write)), line("holds for", s.where)),
        tells ? h("p", {class: "fallback"}, tells) : "",
        example("It must find", r.bad, s.got === "not found" ? h("span", {class: "badmark"}, "≠ not found") : s.got === "error" ? h("span", {class: "badmark"}, "! error") : h("span", {class: "okmark"}, "✓ found")) || "",
        example("It must not find", r.good, s.got === "found in the counterexample" ? h("span", {class: "badmark"}, "≠ found") : m.pass ? h("span", {class: "okmark"}, "✓ not found") : null) || "",
        command(m.command) || "");
    } catch (e) { body.append(failure(e)); }
  };
  const d = h("details", {class: "check " + (s.o === "differs" ? "fail" : "pass"), open: open, ontoggle: () => { if (d.open) fill(); }},
    h("summary", {}, h("span", {class: "lv"}, s.kind), h("b", {}, s.what), h("small", {}, s.where), " ", s.o === "agrees" ? mark(s) : passMark(s)), body);
  if (open) await fill();
  return d;
}
async function staticSection(cl) {
  const list = staticsOf(cl);
  if (!list.length) return null;
  const bad = list.findIndex(s => s.o !== "agrees"), views = [];
  for (const [i, s] of list.entries()) views.push(await staticView(s, i === Math.max(bad, 0)));
  return h("section", {}, h("h3", {}, list.length > 1 ? list.length + " checks without a lab" : "Check without a lab"), views);
}
function troubleSection(cl) {
  const t = cl.trouble;
  return t && h("section", {}, h("h3", {}, "Troubleshooting"), h("dl", {class: "facts"}, [["symptom", t.symptom], ["cause", t.cause], ["cure", t.cure]].map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))));
}
function systemsOf(cl) {
  const i = numberOf.get(cl.id), list = (index.systems || []).map((s, n) => s.includes(i) && systems[n]).filter(Boolean);
  return list.length > 0 && h("p", {class: "meta"}, "Part of: ", list.map(d => [h("a", {class: "chip", href: "#" + d.id}, $(".sname b", d).textContent), " "]));
}
const notChecked = cl => cl.unchecked && h("p", {class: "note"}, h("b", {}, "Nothing checks it: "), cl.unchecked, cl.needs && h("span", {}, ". It would need " + (needWords[cl.needs] || cl.needs) + "."));

// openTarget opens the system that the address names.
function openTarget() {
  if (!location.hash.startsWith("#system-")) return;
  const d = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!d || d.tagName !== "DETAILS") return;
  d.hidden = false;
  if (!d.refill) filter();
  d.open = true;
  d.refill();
  d.scrollIntoView();
}
// The filters stay below the heading of the page, however many lines both have.
const topBar = $("header.top");
const place = () => {
  const set = (name, el) => document.documentElement.style.setProperty(name, (getComputedStyle(el).position === "sticky" ? el.offsetHeight : 0) + "px");
  set("--top", topBar);
  set("--filters", $("#filters"));
};
for (const bar of [topBar, $("#filters")]) new ResizeObserver(place).observe(bar);
place();
