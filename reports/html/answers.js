// Whether features work: the list with its sums, and the page of one feature. The index has
// two letters for every claim, design and version: the state, as a capital where it is
// contested, and what it rests on. Sentences are in the claim's item of a part.
const sup = index.support || {versions: [], designs: [], releases: [], rows: [], grids: [], hosted: []};
const stateWord = {w: "works", c: "under conditions", n: "does not work", u: "unknown"};
const stateMark = {w: "✓", c: "◐", n: "✕", u: "?"};
const letterOf = {works: "w", conditions: "c", "does-not": "n", unknown: "u"};
const levelName = {documents: "documents", model: "model", components: "real components", cluster: "cluster", simulated: "simulated cluster"};
const ANY = sup.releases.length; // the number of "any Windows" among the grids of a claim
const designAt = new Map(sup.designs.map((d, i) => [d.name, i]));

// chosen reads the filters as places: which designs, which version, which release. A build is
// its release here; the page of a feature looks at its revision, too.
function chosen(f) {
  const version = sup.versions.indexOf(f.k8s || sup.through);
  const release = sup.releases.findIndex(r => f.build && (f.build === "r:" + r.name || f.build.startsWith(r.build + ".") && r.channel === "LTSC" || f.build.startsWith(r.build + ".") && !sup.releases.some(o => o.build === r.build && o.channel === "LTSC")));
  const designs = sup.designs.map((d, i) => i).filter(i => !f.net || (f.net.startsWith("n:") ? sup.designs[i].network : sup.designs[i].name) === f.net.slice(2));
  return {version, release: release < 0 ? ANY : release, designs};
}
// stateIn is the state of a claim over the chosen designs: letter, whether it is contested or
// not the same everywhere, and the letters of what it rests on.
function stateIn(cl, at) {
  const rows = sup.grids[cl.grids[at.release]];
  let state = "", mixed = false, contested = false, open = 0, rests = "";
  for (const d of at.designs) {
    const two = sup.rows[rows[d]].slice(2 * at.version, 2 * at.version + 2);
    if (two === "--" || !two) continue;
    const s = two[0].toLowerCase();
    if (s !== two[0]) contested = true;
    if (s === "u") { open++; continue; }
    if (state && s !== state) mixed = true;
    state = state || s;
    rests += two[1];
  }
  // Where it is not known on some networks, the others say what is known.
  return {state: mixed ? "c" : state || (open ? "u" : ""), mixed, contested, open: state ? open : 0, rests};
}
const stateChip = (s, contested) => h("span", {class: "st-chip s-" + s, title: contested ? "documents contradict each other, or the evidence a document" : undefined}, h("i", {"aria-hidden": "true"}, stateMark[s] || "·"), " ", stateWord[s] || "no such design", contested && h("u", {}, " ⇄ contested"));

// --- The list and its sums --------------------------------------------------------------
const fewAnswers = 40;
let allAnswers = false;
const answersBox = $("#answers");
function placeWords(at) {
  const v = sup.versions[at.version], r = sup.releases[at.release];
  const d = at.designs.length === sup.designs.length ? "any network design" : at.designs.map(i => sup.designs[i].title).join(", ");
  return "Kubernetes " + v + ", " + (r ? r.title : "any Windows that the documents name as a node") + ", " + d;
}
function rank(cl, words) {
  if (!words.length) return 0;
  const head = (cl.id + " " + cl.title).toLowerCase();
  return words.every(w => head.includes(w)) ? 0 : 1;
}
function filterAnswers(f) {
  if (!answersBox) return;
  const at = chosen(f), sums = {w: 0, c: 0, n: 0, u: 0}, sure = {r: 0, m: 0, o: 0, d: 0}, byArea = new Map(), found = [];
  let contested = 0, all = 0;
  if (at.version < 0) { $("#a-place").textContent = "No document here is about Kubernetes " + f.k8s + "."; return; }
  for (const cl of index.claims) {
    if (f.area && cl.area !== f.area || !says(claimText(cl), f.words)) continue;
    const s = stateIn(cl, at);
    if (!s.state) continue;
    all++;
    sums[s.state]++;
    if (s.contested) contested++;
    if (s.state !== "u") sure[["r", "m", "o", "d"].find(x => s.rests.includes(x))]++;
    const a = byArea.get(cl.area) || {w: 0, c: 0, n: 0, u: 0};
    a[s.state]++;
    byArea.set(cl.area, a);
    if (!f.state || (f.state === "x" ? s.contested : s.state === f.state)) found.push([cl, s, rank(cl, f.words)]);
  }
  $("#a-place").textContent = placeWords(at);
  for (const b of $$("[data-state]", answersBox)) {
    const n = b.dataset.state === "x" ? contested : sums[b.dataset.state];
    $("b", b).textContent = n;
    b.setAttribute("aria-pressed", f.state === b.dataset.state);
    b.classList.toggle("zero", !n);
  }
  const part = (n, text) => n > 0 && h("li", {}, h("b", {}, n), " " + text);
  $("#a-sure").replaceChildren(...[part(sure.r, "tried here with real components or on a cluster"), part(sure.m, "tried here in the model"), part(sure.o, "by documents, and tried in other versions or on another Windows"), part(sure.d, "by documents alone"), part(sums.u, "not known: no document and no run decides")].filter(Boolean));
  $("#a-areas").replaceChildren(...(index.areas || []).filter(a => byArea.has(a.id)).map(a => {
    const c = byArea.get(a.id), n = c.w + c.c + c.n + c.u;
    const words = Object.keys(stateWord).filter(k => c[k]).map(k => c[k] + " " + stateWord[k]).join(", ");
    return h("a", {href: "#" + hashWith({area: a.id}), class: "area", "aria-current": f.area === a.id ? "true" : undefined}, h("span", {}, a.title), h("span", {class: "stack", role: "img", "aria-label": words, title: words}, Object.keys(stateWord).filter(k => c[k]).map(k => h("i", {class: "s-" + k, style: "flex-grow:" + c[k]}))), h("small", {}, n));
  }));
  const asked = f.q || f.state || f.area;
  const list = asked || allAnswers ? found.sort((a, b) => a[2] - b[2]) : [];
  const show = allAnswers ? list : list.slice(0, fewAnswers);
  $("#a-list").replaceChildren(...show.map(([cl, s]) => h("li", {}, h("a", {href: answerLink(cl)}, cl.title), stateChip(s.state, s.contested), h("small", {}, areaName[cl.area] || cl.area, s.mixed && " · depends on the network", s.open > 0 && " · unknown on " + s.open + (s.open > 1 ? " networks" : " network")))));
  $("#a-found").hidden = !asked && !allAnswers;
  const more = $("#a-more");
  more.hidden = asked ? list.length <= show.length : allAnswers;
  more.textContent = asked ? "show all " + list.length : "list all " + found.length + " features";
  $("#a-none").hidden = !asked || list.length > 0;
  $("#a-none").textContent = "No feature is found. Fewer words find more; a version, a Windows or a network can be chosen beside the search.";
}
if (answersBox) {
  for (const b of $$("[data-state]", answersBox)) b.addEventListener("click", () => {
    const s = form.elements.state;
    s.value = s.value === b.dataset.state ? "" : b.dataset.state;
    filterChanged();
  });
  $("#a-more").addEventListener("click", () => { allAnswers = true; filter(); });
}
// hashWith is the address with some filters changed; answerLink leads to a claim's page.
const hashWith = change => filterKeys.map(k => [k, change[k] ?? form.elements[k].value]).filter(x => x[1]).map(([k, v]) => k + "=" + enc(v)).join("&");
const answerLink = (cl, change = {}) => { const rest = hashWith({q: "", area: "", outcome: "", state: "", ...change}); return "#answer=" + enc(cl.id) + (rest ? "&" + rest : ""); };

// --- The page of one feature ---------------------------------------------------------------
const answerBox = $("#answer");
const relationWord = {agrees: ["=", "agrees with the documents"], contradicts: ["≠", "contradicts the documents"], unclear: ["?", "was tried, and leaves it open"], near: ["~", "not tried here, but where the documents say just the same"], none: ["–", "not tried"]};
// evidenceMarks are the kinds of evidence of an answer, small, in one order.
function evidenceMarks(a) {
  const doc = {works: ["✓", "say that it works"], conditions: ["◐", "say that it works under conditions"], "does-not": ["✕", "say that it does not work"], unknown: ["⇄", "contradict each other"]}[a.documents] || ["·", "say nothing"];
  const own = e => e.relation === "own" ? (e.says ? [stateMark[letterOf[e.says]], "says that it " + stateWord[letterOf[e.says]].replace("under", "works under")] : ["?", "was tried, and decides nothing"]) : relationWord[e.relation];
  const kinds = [["documents", doc], ["model", own(a.model)], ["components", own(a.components)], ["cluster", own(a.cluster)], ["simulated", own(a.simulated)]].filter(([k]) => k !== "simulated" || a[k].relation !== "none");
  return h("ul", {class: "marks", "aria-label": "Evidence"}, kinds.map(([k, [mark, text]]) => h("li", {class: "m-" + (k === "documents" ? "doc" : a[k].relation)},
    h("i", {"aria-hidden": "true"}, mark), h("b", {}, levelName[k]), " ", text, k === "documents" && a.carriedOver && " (read for older versions only)")));
}
const settingAt = id => index.settings.find(s => s.id === id);
function triedIn(cl, a) {
  const ids = [...new Set(["cluster", "components", "simulated", "model"].flatMap(l => a[l].settings || []))];
  return ids.length > 0 && h("p", {class: "tried"}, h("span", {class: "dim"}, a.model.relation === "near" ? "tried in " : "look at the packets: "), ids.map(id => settingAt(id)).filter(Boolean).map(s => [h("a", {class: "chip", href: "#cell=" + enc(cl.id + "/" + s.id)}, (s.title || s.design) + " " + s.kubernetes + ", Windows " + (s.builds || []).join(", ").replaceAll("10.0.", "")), " "]));
}
// segments joins versions with the same state and reservation.
function segments(row, answers) {
  const key = n => n < 0 ? "-" : answers[n].state + !!answers[n].contested + answers[n].why.includes("depends on the Windows");
  const out = [];
  for (const [v, n] of row.entries()) {
    const last = out.at(-1);
    if (last && last.key === key(n) && out.length) { last.to = v; last.all.push(n); } else out.push({key: key(n), from: v, to: v, n, all: [n]});
  }
  return out;
}
const rangeWords = s => sup.versions[s.from] + (s.to > s.from ? "–" + sup.versions[s.to] : "");
// windowsAt finds the row of the claim's Windows for the filter: a release fully patched, or the
// part of it that has a build.
function windowsAt(x, build) {
  if (!build) return x.windows.length - 1;
  if (build.startsWith("r:")) return Math.max(0, x.windows.findLastIndex(w => w.release === build.slice(2)));
  const i = build.lastIndexOf("."), rev = +build.slice(i + 1);
  const at = x.windows.findLastIndex(w => w.build === build.slice(0, i) && rev >= (w.from || 0) && (!w.before || rev < w.before));
  return at < 0 ? x.windows.length - 1 : at;
}
const goto = change => { history.replaceState(null, "", answerLink(index.claims[answerNow], change)); return route(); };
let answerNow = -1;
// strip is a table of states by version; rows are [label, row, chosen, pick].
function strip(caption, rows, answers, version, pick) {
  const at = sup.versions;
  return h("div", {class: "strip-box", tabindex: "0", role: "group", "aria-label": caption}, h("table", {class: "strip"}, h("caption", {class: "off"}, caption),
    h("thead", {}, h("tr", {}, h("td", {}), at.map((v, i) => h("th", {scope: "col", "aria-current": i === version ? "true" : undefined}, v)))),
    h("tbody", {}, rows.map(r => h("tr", {class: r.chosen ? "chosen" : undefined}, h("th", {scope: "row"}, r.label), segments(r.row, answers).map(s => {
      if (s.n < 0) return h("td", {colspan: s.to - s.from + 1, class: "no-design"}, h("span", {class: "off"}, "not a design of " + rangeWords(s)));
      const a = answers[s.n], l = letterOf[a.state], here = r.chosen && version >= s.from && version <= s.to;
      const text = stateWord[l] + (a.contested ? ", contested" : "");
      return h("td", {colspan: s.to - s.from + 1}, h("button", {type: "button", class: "seg s-" + l + (a.contested ? " contested" : "") + (r.dim ? " dimmed" : ""), "aria-pressed": here ? "true" : "false", "aria-label": r.name + ", Kubernetes " + rangeWords(s) + ": " + text, title: "Kubernetes " + rangeWords(s) + ": " + text,
        onclick: () => pick(r, version >= s.from && version <= s.to ? version : s.to)},
      h("i", {"aria-hidden": "true"}, stateMark[l] + (a.contested ? "⇄" : "")), h("span", {class: "range"}, rangeWords(s)), h("span", {class: s.to - s.from > 4 ? "word" : "word narrow"}, stateWord[l])));
    }))))));
}
async function answerView(cl) {
  const x = await item(cl.answers), f = filterValues();
  answerNow = numberOf.get(cl.id);
  const at = chosen(f), w = windowsAt(x, f.build), version = at.version < 0 ? sup.versions.indexOf(sup.through) : at.version;
  const exists = d => x.rows[x.grid[w][d]][version] >= 0;
  // Without a network, one where it was tried, or that the run has.
  const there = at.designs.filter(exists), answerAt = i => x.answers[x.rows[x.grid[w][i]][version]];
  let design = there.find(i => ["model", "components", "simulated", "cluster"].some(l => (answerAt(i)[l].settings || []).length)) ?? there.find(i => sup.designs[i].run) ?? there[0];
  if (design === undefined) design = sup.designs.findIndex((d, i) => exists(i));
  const d = sup.designs[design], win = x.windows[w], n = d ? x.rows[x.grid[w][design]][version] : -1, a = x.answers[n];
  const areas = areaName[cl.area] || cl.area;
  const head = h("div", {class: "a-head"}, h("p", {class: "crumbs"}, h("a", {href: "#" + hashWith({})}, "‹ all features"), " · ", h("a", {href: "#" + hashWith({area: cl.area, q: ""})}, areas)), h("h2", {id: "h-answer", tabindex: "-1"}, cl.title), h("p", {class: "text"}, cl.text), (x.feature || []).length > 0 && h("p", {class: "asked"}, h("span", {class: "dim"}, "What is asked: does this work? "), x.feature.slice(0, 3).map((t, i) => [i > 0 && ", ", h("code", {}, t)]), x.feature.length > 3 && " and " + (x.feature.length - 3) + " more"));
  const out = [head];
  if (f.unknownVersion) out.push(h("p", {class: "fallback", role: "status"}, "No document here is about Kubernetes " + f.unknownVersion + "; this is the answer for " + sup.versions[version] + ". There are " + sup.versions.join(", ") + "."));
  if (a) {
    const l = letterOf[a.state], seg = segments(x.rows[x.grid[w][design]], x.answers).find(s => version >= s.from && version <= s.to);
    const since = [seg.from > 0 && x.rows[x.grid[w][design]][seg.from - 1] >= 0 ? "since " + sup.versions[seg.from] : "in all versions from " + sup.versions[seg.from], seg.to < sup.versions.length - 1 ? "until " + sup.versions[seg.to] : "with no end known"].join(", ");
    const release = sup.releases.find(r => r.name === win.release);
    const differs = new Set(x.windows.map((_, i) => x.rows[x.grid[i][design]][version]).map(i => i < 0 ? "-" : x.answers[i].state)).size > 1;
    out.push(h("section", {class: "said s-" + l, "aria-labelledby": "a-said"},
      h("p", {class: "where"}, "Kubernetes " + sup.versions[version] + " · " + (release ? win.title + " (" + win.build.replace("10.0.", "") + ")" : "any Windows that the documents name as a node") + " · " + d.title),
      h("h3", {id: "a-said"}, h("i", {"aria-hidden": "true"}, stateMark[l]), " ", {w: "Works", c: "Works under conditions", n: "Does not work", u: "Not known"}[l], a.contested && h("u", {}, " ⇄ contested"), h("small", {}, " " + since)),
      h("p", {class: "why"}, a.why.charAt(0).toUpperCase() + a.why.slice(1) + "."),
      (a.notes || []).length > 0 && h("ul", {class: "notes"}, a.notes.map(t => h("li", {}, t))),
      release && release.nodes[version] !== "1" && h("p", {class: "note"}, "No document names " + release.title + " as a node of Kubernetes " + sup.versions[version] + "."),
      evidenceMarks(a), triedIn(cl, a),
      differs && !f.build && h("p", {class: "dim"}, "It is not the same on every Windows: see below.")));
  } else out.push(h("p", {class: "fallback"}, "The documents describe no such design in Kubernetes " + sup.versions[version] + "."));
  // Designs with the same answers share a row.
  const groups = [];
  for (const [i] of sup.designs.entries()) {
    const g = groups.find(o => o.row === x.grid[w][i]);
    if (g) g.of.push(i); else groups.push({row: x.grid[w][i], of: [i]});
  }
  const hostedOn = list => sup.hosted.filter(o => (o.designs || []).some(n => list.some(i => sup.designs[i].name === n))).map(o => h("abbr", {title: o.title + ": " + o.says}, o.name));
  const rows = groups.filter(g => x.rows[g.row].some(n => n >= 0)).map(g => ({row: x.rows[g.row], chosen: g.of.includes(design), of: g.of, name: g.of.map(i => sup.designs[i].title).join(", "),
    label: [g.of.length === sup.designs.length ? "every design" : g.of.map((i, k) => [k > 0 && ", ", sup.designs[i].title]), " ", hostedOn(g.of).map(e => [" ", e])]}));
  out.push(h("section", {"aria-labelledby": "a-strip"}, h("h3", {id: "a-strip"}, "By network design ", h("small", {}, win.release === "any" ? "on any Windows that the documents name as a node" : "on " + win.title)),
    strip("States by network design and version", rows, x.answers, version, (r, v) => goto({k8s: sup.versions[v], net: "d:" + sup.designs[r.of.find(i => i === design) ?? r.of[0]].name})), stripLegend()));
  if (design >= 0) {
    const wins = [];
    for (const [i, o] of x.windows.entries()) {
      if (o.release === "any") continue;
      const row = x.grid[i][design], g = wins.find(y => y.row === row);
      if (g) g.of.push(i); else wins.push({row, of: [i]});
    }
    const named = i => { const r = sup.releases.find(o => o.name === x.windows[i].release); return r.nodes.includes("1"); };
    const title = i => x.windows[i].title.replace("Windows Server, version ", "").replace("Windows Server ", "Server ");
    out.push(h("section", {"aria-labelledby": "a-wins"}, h("h3", {id: "a-wins"}, "By Windows ", h("small", {}, "on " + d.title)), wins.length < 2 ? h("p", {}, "The same on every Windows Server.") :
      strip("States by Windows and version", wins.map(g => ({row: x.rows[g.row], chosen: g.of.includes(w), of: g.of, name: g.of.map(title).join(", "), dim: !g.of.some(named), label: g.of.map((i, k) => [k > 0 && ", ", h("span", {title: x.windows[i].title + ", " + x.windows[i].build}, title(i))])})), x.answers, version,
        (r, v) => { const o = x.windows[r.of[0]]; return goto({k8s: sup.versions[v], build: o.before ? o.build + "." + (o.before - 1) : "r:" + o.release}); })));
  }
  const rest = [sources(cl), historyOf(cl), (x.related || []).length > 0 && h("section", {}, h("h3", {}, "Features that try the same"), h("ul", {class: "related"}, x.related.map(i => h("li", {}, h("a", {href: answerLink(index.claims[i])}, index.claims[i].title), stateChip(stateIn(index.claims[i], {...at, version, designs: d ? [design] : at.designs}).state))))),
    notChecked(cl), troubleSection(cl), await staticSection(cl), across(cl), distributions(), systemsOf(cl), h("p", {class: "ident"}, "claim ", h("code", {}, cl.id), " · ", h("code", {}, "winlab claims answer " + cl.id + (f.k8s ? " -k " + f.k8s : "") + (d && f.net ? " --design " + d.name : "")))];
  return [...out, ...rest];
}
const stripLegend = () => h("p", {class: "strip-legend"}, Object.keys(stateWord).map(k => [h("i", {class: "s-" + k}, stateMark[k]), " " + stateWord[k] + "  "]), "⇄ contested: documents contradict each other, or the evidence a document");
const distributions = () => sup.hosted.length > 0 && h("details", {class: "fold"}, h("summary", {}, "AKS, EKS, RKE2, GKE: which of these designs they have"), h("dl", {class: "facts hosted"}, sup.hosted.map(o => h("div", {}, h("dt", {}, o.name), h("dd", {}, (o.designs || []).map(n => [h("b", {}, (sup.designs[designAt.get(n)] || {title: n}).title), ", "]), o.says + ". ", (o.sources || []).map(s => [h("a", {href: s.url, rel: "noreferrer"}, s.doc), " "]))))));
async function showAnswer(cl) {
  let view;
  try { view = cl ? await answerView(cl) : missing("feature"); } catch (e) { view = [failure(e)]; }
  return () => {
    answerBox.replaceChildren(...[view].flat().filter(Boolean));
    answerBox.hidden = false;
    document.body.classList.add("with-answer");
    document.title = (cl ? cl.title + " · " : "") + "winlab";
  };
}
function hideAnswer() {
  if (!answerBox || answerBox.hidden) return;
  answerBox.hidden = true;
  document.body.classList.remove("with-answer");
  document.title = "winlab: compatibility of Windows nodes";
}
