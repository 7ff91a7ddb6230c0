"use strict";
// Shared by the report and the trace page: data, small helpers, and the view of
// a trace. Text goes into the page through text nodes only; the one exception
// are the drawings, which draw.js has escaped.
const $ = (s, root = document) => root.querySelector(s);
const $$ = (s, root = document) => [...root.querySelectorAll(s)];

// h makes an element: h("a", {href: "#", class: "x"}, "text", child).
function h(tag, attrs, ...children) {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith("on")) el.addEventListener(k.slice(2), v);
    else el.setAttribute(k, v === true ? "" : v);
  }
  for (const c of children.flat(9)) if (c !== undefined && c !== null && c !== false && c !== "") el.append(c);
  return el;
}

const index = JSON.parse($("#index").textContent);
const parts = new Map();

class Fallback extends Error {}

// load returns the items of one part, unpacked once.
function load(n) {
  if (!parts.has(n)) parts.set(n, unpack(document.getElementById("part" + n)));
  return parts.get(n);
}
async function unpack(el) {
  if (!el) throw new Fallback("The page is not complete: a block of its data is missing. Was the download cut off?");
  if (el.type === "application/json") return JSON.parse(el.textContent);
  if (typeof DecompressionStream === "undefined")
    throw new Fallback("This browser cannot unpack the traces (it has no DecompressionStream: Chrome 80, Firefox 113 or Safari 16.4 can). The matrix is complete; the traces are also in results.json beside this file.");
  const bin = atob(el.textContent.trim());
  const bytes = Uint8Array.from(bin, c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
const item = async ref => ref && (await load(ref[0]))[ref[1]];
// traceItem is a trace with references to its paths. Traces that differ in lab and command
// share the rest.
async function traceItem(ref) {
  const t = await item(ref);
  return t && t.of ? {...await item(t.of), lab: index.labs[t.lab], command: t.command} : t;
}

const gradeWords = {code: "read in code", stated: "stated", inferred: "inferred", unknown: "unknown"};
const kinds = {delivered: "ok", varies: "mid", unknown: "hole", error: "err"};
const kind = v => kinds[v] || (index.verdicts[v] ? "no" : "mid");

function grade(g, fact) {
  if (!g) return null;
  const f = fact && index.facts[fact];
  const tip = f ? f.says + (f.sources ? "\n" + f.sources.join("\n") : "") + (f.param ? "\nparameter: " + f.param : "") : fact;
  return h("span", {class: "grade g-" + g, title: tip}, gradeWords[g] || g);
}

function copyButton(text, label = "copy") {
  return h("button", {type: "button", class: "copy", onclick: async e => {
    const b = e.currentTarget;
    let ok = true;
    try { await navigator.clipboard.writeText(text); } catch { ok = copyOld(text); }
    b.textContent = ok ? "copied" : "press Ctrl+C";
    setTimeout(() => { b.textContent = label; }, 1500);
  }}, label);
}
function copyOld(text) {
  const t = h("textarea", {class: "off"});
  t.value = text;
  document.body.append(t);
  t.select();
  const ok = document.execCommand("copy");
  t.remove();
  return ok;
}
const command = text => text && h("div", {class: "cmd"}, h("code", {}, text), copyButton(text));

function verdict(v, reason) {
  const e = reason && index.reasons[reason];
  return h("span", {class: "verd w-" + kind(v), title: index.verdicts[v]}, h("b", {}, v), reason && reason !== "ok" && h("span", {title: e && e.title}, reason));
}

// explain says what a reason code means and where to look on a node.
function explain(reason) {
  const e = reason && reason !== "ok" && index.reasons[reason];
  return e && h("details", {class: "explain"}, h("summary", {}, e.title), h("p", {}, e.means), h("p", {}, h("b", {}, "Look: "), e.look));
}

function origin(o) {
  if (!o) return null;
  const at = o.file ? o.file + (o.line ? ":" + o.line : "") : "";
  return h("div", {class: "from"}, h("span", {class: "lab"}, "from"), o.what, at && h("code", {}, at));
}

// frameFields decodes a frame: its headers from the outside in, each with its fields in the
// order of the bytes. What is cut off or unknown ends as so many bytes.
function frameFields(b64) {
  const bin = atob(b64), b = Uint8Array.from(bin, c => c.charCodeAt(0)), out = [];
  const u16 = i => b[i] << 8 | b[i + 1], u32 = i => u16(i) * 65536 + u16(i + 2);
  const hex = (n, w) => "0x" + n.toString(16).padStart(w, "0");
  const mac = i => [...b.slice(i, i + 6)].map(x => x.toString(16).padStart(2, "0")).join("-");
  const v4 = i => b.slice(i, i + 4).join(".");
  const v6 = i => ipv6(b, i);
  const rest = i => { if (i < b.length) out.push(["payload", [["bytes", b.length - i]]]); };
  const enough = (i, n) => i + n <= b.length || (rest(i), false);
  const names = (n, list) => list.filter((_, k) => n >> k & 1).join(" ") || "none";
  function ethernet(i) {
    if (!enough(i, 14)) return;
    out.push(["Ethernet", [["destination", mac(i)], ["source", mac(i + 6)], ["type", hex(u16(i + 12), 4)]]]);
    const next = {0x800: ip4, 0x86dd: ip6}[u16(i + 12)];
    next ? next(i + 14) : rest(i + 14);
  }
  function ip4(i) {
    const size = (b[i] & 15) * 4;
    if (!enough(i, 20) || size < 20 || !enough(i, size)) return;
    out.push(["IPv4", [["header length", size], ["total length", u16(i + 2)], ["identification", hex(u16(i + 4), 4)], ["flags", names(b[i + 6] >> 5, ["MF", "DF"])], ["fragment offset", (u16(i + 6) & 0x1fff) * 8],
      ["TTL", b[i + 8]], ["protocol", b[i + 9]], ["checksum", hex(u16(i + 10), 4)], ["source", v4(i + 12)], ["destination", v4(i + 16)]]]);
    u16(i + 6) & 0x1fff ? rest(i + size) : transport(b[i + 9], i + size);
  }
  function ip6(i) {
    if (!enough(i, 40)) return;
    out.push(["IPv6", [["payload length", u16(i + 4)], ["next header", b[i + 6]], ["hop limit", b[i + 7]], ["source", v6(i + 8)], ["destination", v6(i + 24)]]]);
    transport(b[i + 6], i + 40);
  }
  function transport(protocol, i) {
    if (protocol === 6) {
      const size = (b[i + 12] >> 4) * 4;
      if (!enough(i, 20) || size < 20 || !enough(i, size)) return;
      out.push(["TCP", [["source port", u16(i)], ["destination port", u16(i + 2)], ["sequence", u32(i + 4)], ["acknowledgement", u32(i + 8)], ["header length", size], ["flags", names(b[i + 13], ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"])], ["window", u16(i + 14)], ["checksum", hex(u16(i + 16), 4)]]]);
      rest(i + size);
    } else if (protocol === 17) {
      if (!enough(i, 8)) return;
      out.push(["UDP", [["source port", u16(i)], ["destination port", u16(i + 2)], ["length", u16(i + 4)], ["checksum", hex(u16(i + 6), 4)]]]);
      if (![4789, 8472].includes(u16(i + 2)) || !(b[i + 8] & 8)) { rest(i + 8); return; } // no VXLAN
      if (!enough(i + 8, 8)) return;
      out.push(["VXLAN", [["flags", hex(b[i + 8], 2)], ["VNI", u32(i + 12) >>> 8]]]);
      ethernet(i + 16);
    } else if (protocol === 1 || protocol === 58) {
      if (!enough(i, 8)) return;
      out.push([protocol === 1 ? "ICMP" : "ICMPv6", [["type", b[i]], ["code", b[i + 1]], ["checksum", hex(u16(i + 2), 4)], ["identifier", u16(i + 4)], ["sequence", u16(i + 6)]]]);
      rest(i + 8);
    } else rest(i);
  }
  ethernet(0);
  return out;
}

function hexdump(b64) {
  const bin = atob(b64);
  const rows = [];
  for (let i = 0; i < bin.length; i += 16) {
    const chunk = bin.slice(i, i + 16);
    const hex = [...chunk].map(c => c.charCodeAt(0).toString(16).padStart(2, "0")).join(" ");
    rows.push(i.toString(16).padStart(4, "0") + "  " + hex.padEnd(48) + "  " + chunk.replace(/[^\x20-\x7e]/g, "."));
  }
  const tree = frameFields(b64).map(([layer, fields]) => h("details", {class: "layer"}, h("summary", {}, layer, h("small", {}, " " + fields.filter(([k]) => /source|destination|VNI|bytes/.test(k)).map(([, v]) => v).join(" > "))),
    h("dl", {}, fields.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))))));
  return h("details", {class: "hex"}, h("summary", {}, "frame, " + bin.length + " bytes"), tree, h("pre", {}, rows.join("\n")));
}

// step lists one step; before is the packet of the step before it.
function step(s, before) {
  const bad = s.action === "drop" || s.action === "reject" || (s.reason && s.reason !== "ok");
  const cls = s.action === "unknown" ? "hole" : bad ? "bad" : s.changes ? "chg" : "";
  const vfp = [s.layer, s.group, s.rule].filter(Boolean);
  return h("li", {class: "step " + cls, "data-n": s.n, value: s.n},
    h("div", {class: "s-head"}, h("span", {class: "num"}, s.n), h("span", {class: "act a-" + s.action}, s.action),
      h("span", {class: "obj"}, s.object, s.port && h("small", {}, " port " + s.port), s.dir && h("small", {}, " " + s.dir)), grade(s.grade, s.evidence)),
    h("div", {class: "s-text"}, s.text, s.reason && s.reason !== "ok" && h("span", {class: "code"}, s.reason)),
    vfp.length > 0 && h("div", {class: "vfp"}, vfp.map((x, i) => [i > 0 && h("span", {class: "sep"}, " / "), h("code", {}, x)]), s.ruleType && h("small", {}, " type " + s.ruleType)),
    s.changes && h("table", {class: "changes"}, h("tbody", {}, s.changes.map(c => h("tr", {}, h("th", {scope: "row"}, c.field), h("td", {}, c.before || "none"), h("td", {class: "to"}, "→"), h("td", {class: "after"}, c.after || "removed"))))),
    s.nearest && s.nearest.map(m => h("div", {class: "near"}, h("span", {class: "lab"}, "nearest"), h("code", {}, m.rule), h("span", {}, m.field + " is ", h("b", {}, m.got), ", the rule wants ", h("b", {}, m.want)), origin(m.from))),
    origin(s.from),
    s.evidence && index.facts[s.evidence] && h("div", {class: "fact"}, h("span", {class: "lab"}, "fact"), index.facts[s.evidence].says, h("small", {}, " " + s.evidence)),
    s.packet && s.packet !== before && h("div", {class: "pkt"}, h("span", {class: "lab"}, "packet"), h("code", {}, s.packet)),
    s.frame && hexdump(s.frame));
}

// pathView draws one path and lists its steps.
function pathView(p, said) {
  const art = h("div", {class: "draw", tabindex: "0", role: "group", "aria-label": "The path, drawn; scrolls sideways"});
  const steps = p.steps || [], turn = findTurn(steps);
  art.innerHTML = drawing(p, turn);
  // A wide drawing may shrink to fit, but only as far as it can be read.
  const svg = $("svg", art);
  svg.style.minWidth = Math.round(svg.getAttribute("width") * 0.82) + "px";
  const list = h("div", {class: "steps"});
  let leg = "", place = "", ol = null, packet = "";
  // A loop is shown for one turn; the others are behind a fold.
  let into = list;
  for (const [i, s] of steps.entries()) {
    if (turn && i === turn.from + turn.len) {
      const last = i + turn.len * (turn.times - 1);
      into = h("details", {class: "loop"}, h("summary", {}, "steps " + steps[turn.from].n + "-" + steps[i - 1].n + " repeat, " + turn.times + " times in all; the other turns are steps " + s.n + "-" + steps[last - 1].n));
      list.append(into);
      place = "";
    }
    if (turn && i === turn.from + turn.len * turn.times) { into = list; place = ""; }
    if (s.leg !== leg || s.place !== place) {
      if (s.leg !== leg) into.append(h("h4", {class: "leg"}, s.leg));
      into.append(h("h5", {}, s.place));
      ol = h("ol", {});
      into.append(ol);
      leg = s.leg; place = s.place;
    }
    ol.append(step(s, packet));
    packet = s.packet || packet;
  }
  const mark = (n, on) => $$('[data-n="' + n + '"]', box).forEach(e => e.classList.toggle("on", on));
  const box = h("div", {class: "path"},
    p.summary && p.summary !== said && h("p", {class: "sum"}, verdict(p.verdict, p.reason), " ", p.summary),
    p.seen && h("p", {class: "seen"}, p.seen.where + " sees ", h("code", {}, p.seen.src + " → " + p.seen.dst)),
    steps.length > 0 && art, list);
  for (const t of ["mouseover", "mouseout"]) box.addEventListener(t, e => {
    const n = e.target.closest("[data-n]");
    if (n) mark(n.dataset.n, t === "mouseover");
  });
  art.addEventListener("click", e => {
    const n = e.target.closest("[data-n]");
    const li = n && $('.step[data-n="' + n.dataset.n + '"]', box);
    if (li) li.scrollIntoView({block: "center", behavior: "smooth"});
  });
  return box;
}

let tabs = 0;
// tabView shows one of several panels; Left and Right move between the tabs.
function tabView(label, entries) {
  const id = "tab" + ++tabs;
  const panel = h("div", {role: "tabpanel", id: id + "p", tabindex: "-1"});
  const btns = entries.map((e, i) => h("button", {type: "button", role: "tab", id: id + "-" + i, "aria-controls": id + "p", onclick: () => pick(i)}, e.label));
  function pick(i) {
    btns.forEach((b, j) => { b.setAttribute("aria-selected", i === j); b.tabIndex = i === j ? 0 : -1; });
    panel.setAttribute("aria-labelledby", btns[i].id);
    panel.replaceChildren(entries[i].make());
  }
  const bar = h("div", {role: "tablist", "aria-label": label, onkeydown: e => {
    const i = btns.indexOf(document.activeElement);
    const to = {ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: btns.length - 1}[e.key];
    if (i < 0 || to === undefined) return;
    e.preventDefault(); e.stopPropagation();
    const j = (to + btns.length) % btns.length;
    pick(j); btns[j].focus();
  }}, btns);
  const bad = entries.findIndex(e => e.first);
  pick(bad < 0 ? 0 : bad);
  return h("div", {class: "tabs"}, bar, panel);
}

// traceView resolves the references of a trace and shows all of it.
async function traceView(ref, opts = {}) {
  const t = await traceItem(ref);
  const paths = await Promise.all((t.paths || []).map(item));
  const names = await Promise.all((t.names || []).map(async n => ({...n, queries: await Promise.all((n.queries || []).map(async q => ({...q, path: await item(q.path)})))})));
  const f = t.flow, addr = (a, p) => a && (p ? (a.includes(":") ? "[" + a + "]" : a) + ":" + p : a);
  const builds = Object.entries(t.lab.builds || {}).map(([n, b]) => n + " " + b).join(", ");
  const line = (k, ...v) => v.some(Boolean) && h("div", {}, h("dt", {}, k), h("dd", {}, v));
  const ends = [addr(f.src, f.srcPort), addr(f.dst, f.dstPort)].filter(Boolean).join(" → ");
  return h("div", {class: "trace"},
    h("div", {class: "banner w-" + kind(t.verdict)}, h("strong", {}, t.verdict), t.reason && t.reason !== "ok" && h("code", {}, t.reason), grade(t.grade), t.summary && h("p", {}, t.summary)),
    explain(t.reason),
    h("dl", {class: "facts"},
      line("flow", h("b", {}, f.from + " → " + f.to), " " + f.protocol + " ", ends && h("code", {}, ends), f.node && " on " + f.node),
      line("lab", t.lab.name, t.lab.variant && " (" + t.lab.variant + ")", " · Kubernetes " + t.lab.kubernetes, " · " + t.lab.network, t.lab.proxy && " · kube-proxy " + t.lab.proxy, t.lab.components && " · real " + t.lab.components.join(", ")),
      builds && line("Windows", builds),
      t.notModelled && line("not modelled", t.notModelled.map(n => h("p", {class: "notice"}, h("b", {}, n.what), n.at && n.at.file && h("code", {}, " " + n.at.file + (n.at.line ? ":" + n.at.line : "")), h("small", {}, n.why)))),
      t.assumed && line("assumed", t.assumed.map(a => h("span", {class: "assume"}, a.what + " " + a.value, a.flag && h("small", {}, " " + a.flag))))),
    names.map(nameView),
    paths.length > 1 ? tabView("Backends", paths.map((p, i) => ({
      label: h("span", {class: "w-" + kind(p.verdict)}, (p.choices || []).map(c => c.param ? "if " + (c.where ? "on " + c.where + " " : "") + c.label : c.label).join(", ") || "path " + (i + 1), " ", h("b", {}, p.verdict)),
      first: p.verdict !== "delivered" && !paths.slice(0, i).some(x => x.verdict !== "delivered"),
      make: () => pathView(p)}))) : paths.map(p => pathView(p, t.summary)),
    t.hints && h("div", {class: "hints"}, t.hints.map(x => /^(winlab|kubectl) /.test(x) ? command(x) : h("p", {}, x))),
    !opts.noCommand && command(t.command));
}

function nameView(n) {
  return h("details", {class: "name", open: n.verdict !== "delivered"},
    h("summary", {}, h("code", {}, n.name), " asked by " + n.tool + " ", verdict(n.verdict, n.reason), n.answers && " " + n.answers.join(", ")),
    n.summary && h("p", {}, n.summary),
    (n.queries || []).map(q => h("div", {class: "query"},
      h("p", {}, h("code", {}, q.name + " " + q.type), " to " + q.server + ": ", h("b", {}, q.rcode || "no answer"), q.answers && " " + q.answers.join(", "), " ", grade(q.grade, q.evidence), q.why && h("small", {}, " " + q.why)),
      q.path && h("details", {}, h("summary", {}, "way of this question"), pathView(q.path)))));
}

function failure(e) {
  return h("p", {class: "fallback", role: "alert"}, e instanceof Fallback ? e.message : "This could not be shown: " + e.message);
}

// The theme: what the system says, unless the button said otherwise.
function setTheme(t) {
  document.documentElement.dataset.theme = t;
  try { localStorage.setItem("winlab-theme", t); } catch { /* file:// without storage */ }
}
function toggleTheme() {
  const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
}
try { const t = localStorage.getItem("winlab-theme"); if (t) document.documentElement.dataset.theme = t; } catch { /* same */ }
$("#theme").addEventListener("click", toggleTheme);
const typing = e => /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey;
