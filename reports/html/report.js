// The report: filters, the matrix as an ARIA grid, the panel and the addresses.
const docWords = {works: "it works", fails: "it does not work", conditional: "it works under a condition", disputed: "sources contradict each other", silent: "nothing"};
const outWords = {agrees: "as documented", differs: "differs from the documents", own: "documents are silent, the model's own verdict", disputed: "differs from this source, as another source says", unknown: "the model does not know", "not-checked": "no packet reached what the claim is about", error: "the check could not be done", unchecked: "nothing checks it here"};
const grid = $("#m"), form = $("#filters"), panel = $("#panel"), pbody = $("#p-body"), help = $("#help");
const heads = $$("thead th[data-i]", grid);
const bodies = $$("tbody", grid);
const rows = $$("tr[data-c]", grid);
const colStyle = document.head.appendChild(h("style"));
let hiddenCols = new Set();

// --- Address: #cell=claim/setting&k8s=1.20&q=text ---------------------------
const filterKeys = ["q", "k8s", "build", "net", "area", "outcome", "state"];
function address() {
  const out = {};
  for (const p of location.hash.slice(1).split("&")) {
    const i = p.indexOf("=");
    if (i > 0) try { out[p.slice(0, i)] = decodeURIComponent(p.slice(i + 1)); } catch { /* not ours */ }
  }
  return out;
}
function hashOf(open) {
  const list = Object.entries(open).map(([k, v]) => k + "=" + enc(v));
  for (const k of filterKeys) if (form.elements[k].value) list.push(k + "=" + enc(form.elements[k].value));
  return "#" + list.join("&");
}
const opened = a => a.answer ? {answer: a.answer} : a.cell ? {cell: a.cell} : a.flow ? {flow: a.flow} : a.claim ? {claim: a.claim} : {};

// --- Filters ----------------------------------------------------------------
let unknownVersion = ""; // a version of the address that no document is about
const filterValues = () => ({...Object.fromEntries(filterKeys.map(k => [k, form.elements[k].value.trim()])), unknownVersion});
const ordinal = v => v.split(".").reduce((n, x) => n * 1000 + +x, 0);
const tried = [...new Set(heads.map(th => th.dataset.k8s))].sort((a, b) => ordinal(a) - ordinal(b));
// columnsFor are the versions of the columns for a version: itself, or where nothing was run
// with it, its neighbours.
function columnsFor(v) {
  if (!v || tried.includes(v)) return v ? [v] : tried;
  return [tried.findLast(x => ordinal(x) < ordinal(v)), tried.find(x => ordinal(x) > ordinal(v))].filter(Boolean);
}
const onBuild = (builds, b) => !b || builds.split(" ").some(x => b.startsWith("r:") ? x.startsWith((sup.releases.find(r => r.name === b.slice(2)) || {build: "?"}).build + ".") : x === b);
function filter() {
  const f = filterValues(), versions = columnsFor(f.k8s);
  $("#between").hidden = !f.k8s || tried.includes(f.k8s);
  $("#between").textContent = "Nothing was run with Kubernetes " + f.k8s + ": the matrix has its neighbours " + versions.join(" and ") + ". What works answers for " + f.k8s + " by the ranges of the documents.";
  hiddenCols = new Set();
  for (const th of heads) {
    const d = th.dataset;
    const ok = versions.includes(d.k8s) && onBuild(d.builds, f.build) &&
      (!f.net || (f.net.startsWith("n:") ? d.net : d.design) === f.net.slice(2));
    if (!ok) hiddenCols.add(+d.i);
  }
  colStyle.textContent = [...hiddenCols].map(i => "#m .s" + i).join(",") + (hiddenCols.size ? "{display:none}" : "");
  const span = {};
  for (const th of heads) if (!hiddenCols.has(+th.dataset.i)) span[th.dataset.design] = (span[th.dataset.design] || 0) + 1;
  for (const g of $$("th.g", grid)) { g.hidden = !span[g.dataset.design]; if (!g.hidden) g.colSpan = span[g.dataset.design]; }
  for (const th of $$("tr.ah th", grid)) th.colSpan = heads.length - hiddenCols.size + 1;
  for (const td of $$("td.st", grid)) td.colSpan = Math.max(1, heads.length - hiddenCols.size);
  const words = f.q.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const b of bodies) {
    let any = false;
    for (const tr of $$("tr[data-c]", b)) {
      let ok = (!f.area || b.dataset.area === f.area) && (!words.length || says(claimText(index.claims[+tr.dataset.c]), words));
      const cl = index.claims[+tr.dataset.c];
      if (tr.classList.contains("no")) ok = ok && (!f.outcome || cl.outcome === f.outcome) && inScope(cl, f);
      else if (ok && f.outcome) ok = [...tr.getElementsByClassName(f.outcome)].some(td => !hiddenCols.has(+td.dataset.s)) || cl.outcome === f.outcome && f.outcome === "differs" && staticsOf(cl).some(s => s.o === "differs");
      tr.hidden = !ok;
      if (ok) { any = true; shown++; }
    }
    b.hidden = !any;
  }
  grid.dataset.only = f.outcome;
  // A matrix of many columns fits no paper.
  document.body.classList.toggle("many", heads.length - hiddenCols.size > 12);
  for (const t of $$(".tile")) t.setAttribute("aria-pressed", t.dataset.outcome === f.outcome);
  $("#shown").textContent = shown + " of " + rows.length + " claims, " + (heads.length - hiddenCols.size) + " of " + heads.length + " settings";
  filterPages(f);
  filterAnswers({...f, words});
  ensureStop();
}
function filterChanged() {
  const open = opened(address());
  history.replaceState(null, "", hashOf(open));
  unknownVersion = "";
  $("#no-version").hidden = true;
  // On the page of a feature versions, Windows and networks ask another question; words and
  // areas look for another feature.
  if (open.answer && form.elements.q.value + form.elements.area.value + form.elements.state.value !== "") history.replaceState(null, "", hashOf({}));
  if (open.answer) route(); else filter();
}
// Each key filters the list of features at once, and the long tables when the typing pauses.
let pause = 0;
const settle = () => { if (pause) { clearTimeout(pause); pause = 0; filterChanged(); } };
form.addEventListener("input", e => {
  if (e.target.name !== "q" || opened(address()).answer) { settle(); filterChanged(); return; }
  const f = filterValues();
  filterAnswers({...f, words: f.q.toLowerCase().split(/\s+/).filter(Boolean)});
  clearTimeout(pause);
  pause = setTimeout(settle, 150);
});
form.addEventListener("submit", e => { e.preventDefault(); settle(); focusFirst(); });
form.addEventListener("reset", () => setTimeout(filterChanged));
for (const t of $$(".tile")) t.addEventListener("click", () => {
  const s = form.elements.outcome;
  s.value = s.value === t.dataset.outcome ? "" : t.dataset.outcome;
  filterChanged();
  if (s.value) $("#matrix").scrollIntoView();
});
for (const b of bodies) {
  const btn = $("button", b);
  btn.addEventListener("click", () => {
    const open = btn.getAttribute("aria-expanded") !== "true";
    btn.setAttribute("aria-expanded", open);
    b.classList.toggle("shut", !open);
    ensureStop();
  });
}

// --- The grid: one tab stop, arrows move it ----------------------------------
let stop = null;
const visible = td => !td.parentElement.hidden && !td.closest("tbody").hidden && !td.closest("tbody").classList.contains("shut") && !hiddenCols.has(+td.dataset.s);
function setStop(td, focus) {
  if (stop) stop.tabIndex = -1;
  stop = td;
  if (!td) return;
  td.tabIndex = 0;
  if (focus) { td.setAttribute("aria-label", say(td)); td.focus({preventScroll: true}); reveal(td); }
}
function ensureStop() {
  if (!stop || !visible(stop)) setStop(cells().find(visible) || null);
}
const cells = () => $$("td.c", grid);
const focusFirst = () => { const td = cells().find(visible); if (td) setStop(td, true); };
// reveal scrolls a cell out from under the sticky heading and first column.
function reveal(td) {
  const box = $("#scroll"), b = box.getBoundingClientRect(), r = td.getBoundingClientRect();
  const left = $("th.corner").getBoundingClientRect().right, top = $("thead", grid).getBoundingClientRect().bottom;
  if (r.left < left) box.scrollLeft -= left - r.left + 8; else if (r.right > b.right) box.scrollLeft += r.right - b.right + 16;
  if (r.top < top) box.scrollTop -= top - r.top + 30; else if (r.bottom > b.bottom) box.scrollTop += r.bottom - b.bottom + 16;
  const now = td.getBoundingClientRect();
  if (now.top < 0 || now.bottom > innerHeight) td.scrollIntoView({block: "center", inline: "nearest"});
}
const claimOf = td => index.claims[+td.parentElement.dataset.c];
const headOf = td => heads[+td.dataset.s];
function say(td) {
  const doc = ($("i", td).className || "").slice(2), cls = ["differs", "error", "disputed", "unknown", "not-checked", "own", "agrees"].find(c => td.classList.contains(c));
  return claimOf(td).title + ", " + headOf(td).dataset.title + ": documents say " + (docWords[doc] || doc) + "; found " + $$("b", td).map(b => b.textContent).join(" and ") + "; " + outWords[cls];
}
function move(td, dx, dy, far) {
  const line = tr => $$("td.c", tr).filter(visible);
  if (dx) {
    const l = line(td.parentElement), i = far ? (dx > 0 ? l.length - 1 : 0) : l.indexOf(td) + dx;
    if (l[i]) setStop(l[i], true);
    return;
  }
  let left = Math.abs(dy);
  let to = null;
  const all = rows.filter(tr => line(tr).length);
  for (let i = all.indexOf(td.parentElement) + Math.sign(dy); all[i] && left > 0; i += Math.sign(dy), left--) to = all[i];
  if (!to) return;
  const s = +td.dataset.s;
  setStop(line(to).reduce((a, b) => Math.abs(b.dataset.s - s) < Math.abs(a.dataset.s - s) ? b : a), true);
}
grid.addEventListener("keydown", e => {
  const td = e.target.closest("td.c");
  if (!td || e.altKey || e.metaKey) return;
  const all = () => cells().filter(visible);
  const act = {
    ArrowRight: () => move(td, 1, 0), ArrowLeft: () => move(td, -1, 0), ArrowDown: () => move(td, 0, 1), ArrowUp: () => move(td, 0, -1),
    PageDown: () => move(td, 0, 10), PageUp: () => move(td, 0, -10),
    Home: () => e.ctrlKey ? setStop(all()[0], true) : move(td, -1, 0, true), End: () => e.ctrlKey ? setStop(all().at(-1), true) : move(td, 1, 0, true),
    Enter: () => openCell(td), " ": () => openCell(td),
  }[e.key];
  if (act) { e.preventDefault(); act(); }
});
grid.addEventListener("click", e => { const td = e.target.closest("td.c"); if (td) { setStop(td); openCell(td); } });
grid.addEventListener("focusin", e => { const td = e.target.closest("td.c"); if (td) td.setAttribute("aria-label", say(td)); });

// --- The panel ---------------------------------------------------------------
let from = null; // where the focus goes back to
const openCell = td => { from = td; location.hash = hashOf({cell: claimOf(td).id + "/" + headOf(td).dataset.id}); };
function closePanel() {
  if (!panel.hidden) history.pushState(null, "", hashOf({}) === "#" ? location.pathname + location.search : hashOf({}));
  route();
}
const findCell = (claim, setting) => {
  const c = index.claims.findIndex(x => x.id === claim), s = index.settings.findIndex(x => x.id === setting);
  return c >= 0 && s >= 0 ? rows.find(r => +r.dataset.c === c).querySelector("td.c[data-s='" + s + "']") : null;
};
let turn = 0;
async function route() {
  const a = address(), mine = ++turn;
  delete document.documentElement.dataset.ready;
  for (const k of filterKeys) if (a[k] !== undefined && form.elements[k].value !== a[k]) form.elements[k].value = a[k];
  // What was looked for is not part of the question on the page of a feature.
  if (a.answer) for (const k of ["q", "area", "outcome", "state"]) if (a[k] === undefined) form.elements[k].value = "";
  const asked = (a.k8s || "").replace(/^v/, "").split(".").slice(0, 2).join(".");
  if (asked && form.elements.k8s.value !== a.k8s) form.elements.k8s.value = asked;
  unknownVersion = asked && form.elements.k8s.value !== asked ? a.k8s : "";
  if (a.build && !form.elements.build.value) addBuild(a.build);
  $("#no-version").hidden = !unknownVersion;
  $("#no-version").textContent = "No document here is about Kubernetes " + unknownVersion + ". There are " + sup.versions.join(", ") + ".";
  filter();
  $$("td.open", grid).forEach(td => td.classList.remove("open"));
  const what = opened(a);
  let back = "";
  if (what.answer) {
    const fill = await showAnswer(index.claims.find(c => c.id === what.answer));
    if (mine !== turn) return;
    back = answerBox.hidden ? "" : (document.activeElement.getAttribute && document.activeElement.getAttribute("aria-label")) || "";
    const first = answerBox.hidden || answerBox.dataset.claim !== what.answer;
    fill();
    answerBox.dataset.claim = what.answer;
    if (first) { scrollTo(0, 0); $("#h-answer")?.focus({preventScroll: true}); } else if (back) $$("button", answerBox).find(b => b.getAttribute("aria-label") === back)?.focus({preventScroll: true});
  } else if (!a.cell && !a.flow && !a.claim || !answerBox || answerBox.hidden) hideAnswer();
  if (what.answer || !Object.keys(what).length) {
    const was = !panel.hidden;
    panel.hidden = true;
    document.body.classList.remove("with-panel");
    if (was && !what.answer) (from && from.isConnected ? from : stop)?.focus?.({preventScroll: true});
    if (!what.answer) openTarget();
    document.documentElement.dataset.ready = "";
    return;
  }
  let view;
  try {
    if (a.cell) {
      const i = a.cell.indexOf("/"), claim = a.cell.slice(0, i), setting = a.cell.slice(i + 1);
      const td = findCell(claim, setting);
      if (td) { td.classList.add("open"); setStop(td); from = td; }
      view = await cellView(claim, setting);
    } else if (a.flow) view = await flowView((index.flows || []).find(f => f.id === a.flow));
    else view = await claimView(index.claims.find(c => c.id === a.claim));
  } catch (e) { view = [failure(e)]; }
  if (mine !== turn) return;
  pbody.replaceChildren(...[view].flat().filter(Boolean));
  pbody.scrollTop = 0;
  panel.hidden = false;
  document.body.classList.add("with-panel");
  pbody.focus({preventScroll: true});
  document.documentElement.dataset.ready = "";
}

// addBuild offers a build that no column has, if it is one of a release.
function addBuild(b) {
  if (!/^10\.0\.\d+\.\d+$/.test(b) || !sup.releases.some(r => b.startsWith(r.build + "."))) return;
  form.elements.build.append(h("option", {value: b}, b));
  form.elements.build.value = b;
}

const missing = what => [h("h2", {id: "p-title"}, "Not here"), h("p", {}, "This report has no such " + what + ". It may come from another run.")];
const webURL = u => /^https?:\/\//.test(u || "") ? u : undefined;
const sources = cl => cl.sources && cl.sources.length > 0 && h("section", {}, h("h3", {}, "Sources"), h("ul", {class: "sources"}, cl.sources.map(s => h("li", {},
  webURL(s.url) ? h("a", {href: s.url, rel: "noreferrer"}, s.doc) : h("span", {}, s.doc), s.section && ", " + s.section, s.version && h("small", {}, " " + s.version), s.says && h("blockquote", {}, s.says)))));
const historyOf = cl => cl.history && cl.history.length > 0 && h("section", {}, h("h3", {}, "History over versions"), h("ul", {class: "history"}, cl.history.map(s => h("li", {}, h("span", {class: "status st-" + s.status}, s.status), h("span", {}, s.where, s.says && h("small", {}, s.says))))));
function across(cl, now) {
  const tr = rows.find(r => index.claims[+r.dataset.c] === cl), list = $$("td.c", tr);
  return list.length > 1 && h("section", {}, h("h3", {}, "The same claim elsewhere"), h("div", {class: "across"}, list.map(td => {
    const d = headOf(td).dataset;
    return h("a", {href: "#cell=" + enc(cl.id + "/" + d.id), class: "chip " + td.className.replace(/\bs\d+|\bopen\b|\bf\b/g, ""), "aria-current": d.id === now ? "true" : undefined}, h("span", {}, d.title), $$("i,b,u", td).map(x => x.cloneNode(true)));
  })));
}
const title = (text, extra) => h("h2", {id: "p-title"}, text, extra);

async function claimView(cl) {
  if (!cl) return missing("claim");
  $("#p-where").textContent = areaTitle(cl);
  return [title(cl.title), h("p", {}, h("a", {href: answerLink(cl)}, "Does it work? The answer by version, Windows and network ›")), h("p", {class: "state"}, outcomeChip(cl.outcome), " ", (cl.checkedBy || []).length > 0 && h("span", {class: "dim"}, "checked by "), (cl.checkedBy || []).length > 0 && checkedBy(cl)),
    h("p", {class: "text"}, cl.text), notChecked(cl), troubleSection(cl), await staticSection(cl), across(cl), sources(cl), historyOf(cl), systemsOf(cl), h("p", {class: "ident"}, "claim ", h("code", {}, cl.id))];
}
const areaTitle = cl => (index.areas.find(a => a.id === cl.area) || {}).title || cl.area;

async function cellView(claim, setting) {
  const cl = index.claims.find(c => c.id === claim), s = index.settings.find(x => x.id === setting);
  const c = cl && (await item(cl.cells))[setting];
  if (!c) return missing("cell");
  $("#p-where").textContent = areaTitle(cl) + " · " + (s.title || s.design) + " · Kubernetes " + s.kubernetes;
  const checks = c.checks || [];
  const views = [];
  const firstBad = Math.max(0, checks.findIndex(k => !k.pass));
  for (const [i, k] of checks.entries()) views.push(await checkView(k, i === firstBad, checks.length > 1));
  return [title(cl.title),
    h("div", {class: "versus " + c.outcome},
      h("div", {}, h("small", {}, "documents"), h("b", {class: "doc d-" + c.documented}, c.documented), c.basis && h("span", {}, c.basis), c.status && h("span", {class: "status st-" + c.status}, c.status)),
      h("div", {class: "sign", "aria-hidden": "true"}, {differs: "≠", agrees: "=", disputed: "⇄", unknown: "?", "not-checked": "∅", error: "!", own: "·"}[c.outcome] || "·"),
      ...["model", "components", "cluster"].map(l => {
        const ks = checks.filter(k => (k.level || "model") === l);
        const k = ks.find(x => !x.pass) || ks[0];
        return k && h("div", {}, h("small", {}, l), verdict(k.got, k.reason), grade(k.grade));
      }),
      h("p", {}, outWords[c.outcome] || c.outcome)),
    h("p", {class: "text"}, cl.text), h("p", {}, h("a", {href: answerLink(cl, {k8s: s.kubernetes, net: "d:" + s.design})}, "Does it work? The answer by version, Windows and network ›")),
    h("p", {class: "meta"}, s.design + (s.variant ? " " + s.variant : "") + " · " + s.plugin + " on " + s.network + " · kube-proxy " + s.proxy + " · Windows " + (s.builds || []).join(", ") + (s.components ? " · real " + s.components.join(", ") : "") + " · ", h("code", {}, s.file)),
    evidence(cl, checks, s),
    h("section", {}, h("h3", {}, checks.length > 1 ? checks.length + " checks" : "Check"), views, !checks.length && h("p", {class: "none"}, "No check was made.")),
    await staticSection(cl), across(cl, setting), sources(cl), historyOf(cl), systemsOf(cl), h("p", {class: "ident"}, "claim ", h("code", {}, cl.id))];
}

// evidence puts what each kind of evidence says of a check side by side: the model, live
// flows, real components, a cluster. One kind alone needs no table.
function evidence(cl, checks, s) {
  const levels = ["model", "components", "cluster"], level = k => k.level || "model";
  const not = ((s.cluster || {}).notTried || []).filter(n => n.claim === cl.id);
  const kinds = [...levels.filter(l => checks.some(k => level(k) === l) || l === "cluster" && not.length)];
  if (checks.some(k => k.live)) kinds.splice(kinds[0] === "model" ? 1 : 0, 0, "live");
  if (kinds.length < 2) return null;
  const said = k => [verdict(k.got, k.reason), !k.pass && h("span", {class: "badmark", title: "not as expected"}, " ≠")];
  const lived = k => k.live.notMade ? h("small", {}, "not made: " + k.live.notMade) : [verdict(k.live.got), k.live.differs && h("span", {class: "badmark"}, " ≠ " + k.live.differs)];
  const unique = list => list.filter((x, i) => list.findIndex(y => y.textContent === x.textContent) === i);
  const all = [...new Set([...checks.map(k => k.what), ...not.map(n => n.what)])];
  return h("section", {}, h("h3", {}, "What each evidence says"), h("div", {class: "wide"}, h("table", {class: "list evidence"},
    h("thead", {}, h("tr", {}, ["Check", "Documents", ...kinds].map(x => h("th", {scope: "col"}, x === "cluster" && s.cluster && s.cluster.simulated ? "simulated cluster" : x)))),
    h("tbody", {}, all.map(what => {
      const mine = checks.filter(k => k.what === what), left = not.filter(n => n.what === what);
      const known = [...new Set(mine.map(k => k.known).filter(Boolean))];
      const asked = [...new Set(mine.map(k => k.expect).filter(Boolean))];
      const sees = x => ({"no-reply": "dropped", looped: "dropped"}[x] || x);
      const apart = new Set(mine.map(k => sees(k.got))).size > 1 || mine.some(k => !k.pass || k.live && k.live.differs);
      return h("tr", {class: apart ? "differs" : undefined}, h("th", {scope: "row"}, what, known.map(x => h("small", {class: "known"}, "explained: " + x))), h("td", {}, asked.join(", ") || h("small", {}, "nothing")),
        kinds.map(kind => {
          const own = mine.filter(k => kind === "live" ? k.live : level(k) === kind);
          const cells = unique(own.map(k => h("div", {}, kind === "live" ? lived(k) : said(k))));
          const why = kind === "cluster" ? left.map(n => h("small", {}, "not tried: " + n.why, n.maySkip && " May go untried: " + n.maySkip)) : [];
          return h("td", {}, cells, unique(why), !cells.length && !why.length && h("small", {}, "not asked"));
        }));
    })))));
}

async function checkView(k, open, several) {
  const body = h("div", {class: "body"});
  const fill = async () => {
    if (body.childNodes.length) return;
    try {
      body.append(h("dl", {class: "eg"}, h("div", {}, h("dt", {}, "expected"), h("dd", {}, k.expect ? h("b", {}, k.expect) : "nothing: it only observes")), h("div", {class: k.pass ? "" : "not"}, h("dt", {}, "got"), h("dd", {}, verdict(k.got, k.reason), !k.pass && h("span", {class: "badmark"}, " ≠ not as expected")))));
      if (k.known) body.append(h("p", {class: "known"}, "explained: " + k.known));
      if (k.live) body.append(h("p", {class: "sum"}, h("span", {class: "lab"}, "live"), " ", k.live.notMade ? "not made: " + k.live.notMade : [verdict(k.live.got), k.live.differs ? h("span", {class: "badmark"}, " ≠ " + k.live.differs) : " as in the trace"]));
      if (k.command) body.append(command(k.command));
      if (k.trace) body.append(await traceView(k.trace, {noCommand: !!k.command}));
      else if (k.summary) body.append(h("p", {class: "sum"}, k.summary), explain(k.reason) || "");
    } catch (e) { body.append(failure(e)); }
  };
  const d = h("details", {class: "check " + (k.pass ? "pass" : "fail"), open: open, ontoggle: () => { if (d.open) fill(); }},
    h("summary", {}, h("span", {class: "lv"}, k.level), h("b", {}, k.what), several && verdict(k.got)), body);
  if (open) await fill();
  return d;
}

async function flowView(f) {
  if (!f) return missing("flow");
  $("#p-where").textContent = [f.incident, f.lab, f.variant].filter(Boolean).join(" · ");
  const twins = index.flows.filter(x => x.lab === f.lab && x.file === f.file && x.name === f.name && x.variant !== f.variant);
  return [title(f.title || f.name, f.variant && h("span", {class: "variant v-" + f.variant}, f.variant)), h("p", {class: "meta"}, f.name + " · ", h("code", {}, f.file)),
    f.story && h("p", {class: "text story"}, f.story), await sideBySide(f), f.trace && await takeAway(f),
    twins.length > 0 && h("p", {}, twins.map(x => h("a", {class: "chip", href: "#flow=" + enc(x.id)}, "compare: " + x.variant + ", " + x.got))), await checkView(f, true, false)];
}

// --- Buttons and keys ---------------------------------------------------------
function nextDifference(dir) {
  const list = cells().filter(td => td.classList.contains("differs") && visible(td));
  if (!list.length) return;
  const a = address(), cur = a.cell ? list.indexOf($("td.open", grid)) : -1;
  let i = cur + dir;
  if (cur < 0) {
    // From a cell that does not differ: the next one in reading order.
    const at = $("td.open", grid) || stop;
    i = at ? list.findIndex(td => at.compareDocumentPosition(td) & 4) : 0;
    if (dir < 0) i = (i < 0 ? list.length : i) - 1;
  }
  const td = list[(i + list.length) % list.length];
  setStop(td);
  reveal(td);
  openCell(td);
}
$("#p-close").addEventListener("click", closePanel);
$("#p-next").addEventListener("click", () => nextDifference(1));
$("#p-prev").addEventListener("click", () => nextDifference(-1));
$("#p-link").addEventListener("click", async e => {
  const b = e.currentTarget;
  try { await navigator.clipboard.writeText(location.href); } catch { copyOld(location.href); }
  b.textContent = "copied";
  setTimeout(() => { b.textContent = "link"; }, 1500);
});
$("#keys").addEventListener("click", () => help.showModal());
document.addEventListener("keydown", e => {
  if (help.open) return;
  if (e.key === "Escape") {
    if (e.target === form.elements.q && form.elements.q.value) return;
    if (!panel.hidden) { e.preventDefault(); closePanel(); } else if (typing(e)) focusFirst();
    return;
  }
  if (typing(e)) return;
  const act = {"/": () => { form.elements.q.focus(); form.elements.q.select(); }, "?": () => help.showModal(), t: toggleTheme, n: () => nextDifference(1), p: () => nextDifference(-1)}[e.key];
  if (act) { e.preventDefault(); act(); }
});
addEventListener("hashchange", route);
addEventListener("popstate", () => { if (!location.hash.includes("=")) route(); });
document.addEventListener("click", e => {
  const a = e.target.closest('a[href^="#"]');
  if (!a) return;
  const to = a.getAttribute("href");
  if (to.includes("=")) { if (!panel.contains(a)) from = a; }
  // A link that filters only leads to the matrix.
  if (/^#(net|area)=/.test(to)) setTimeout(() => $("#matrix").scrollIntoView());
  if (to.startsWith("#system-")) setTimeout(route);
});
route();
