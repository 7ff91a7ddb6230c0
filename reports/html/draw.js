"use strict";
// draw makes the drawing of a path: a lane for each place, a card for each stay of the packet
// there, the request above and the reply below, tunnels as pipes, and a cross where it ends
// badly. The same path gives the same text, an SVG element for a page with the rules of draw.css
// and the colours, the variables --wl-... . It reads the path and nothing else, and asks no
// browser for anything. A path without steps gives a drawing that says so.
const draw = (() => {
  const charW = 7;      // width of a character of the drawing's font, rounded up
  const lineH = 16;     // height of a line
  const minChars = 22, maxChars = 42;
  const wrapAt = 34;    // characters of a line of words
  const padX = 10;
  const indent = 24;    // room for the number
  const gapX = 54;      // between lanes
  const gapY = 34;      // between bands
  const headH = 30;     // lane heading
  const margin = 30;
  const tubeH = 22;     // height of the tunnel
  const maxCards = 24;  // more are cut out of the middle
  const tags = {allow: "allow", rewrite: "rewrite", encap: "encap", decap: "decap", "no-match": "no match", drop: "drop", reject: "reject", unknown: "unknown", proxy: "proxy"};

  const length = s => [...s].length;
  const half = n => Math.trunc(n / 2);
  // line is text on one line. What else would act without being seen is not in the page's data.
  const line = s => (s || "").replaceAll("\n", "\\n");
  const esc = s => line(s).replace(/[&'<>"]/g, c => ({"&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;", '"': "&#34;"})[c]);
  const arrows = s => s.replaceAll("->", "→");
  // short cuts s to n characters.
  const short = (s, n) => { n = Math.max(n, 2); return length(s) <= n ? s : [...s].slice(0, n - 1).join("") + "…"; };
  // bad says whether a step ends a leg badly.
  const bad = s => ["drop", "reject", "unknown"].includes(s.action) || !!s.reason && s.reason !== "ok";

  // A card is what happened in one place without leaving it. Its rows are headings (n is 0) and
  // steps; of a step's lines the first, said, are words, the others changes. flow is the packet
  // as it is after the card, changed whether the card changed its addresses, tunnel and outer
  // what is around it; encIn and encOut say whether it came and left inside a tunnel. end is how
  // the path ends here, "" when it goes on.
  // transit: the card only sees the tunnel from outside.
  const transit = c => c.encIn && c.encOut && !c.end;
  const rowHeight = r => lineH + 4 + r.lines.length * (lineH - 2);
  const footer = c => !c.flow ? 0 : c.tunnel ? 2 * lineH + 8 : lineH + 8;
  // wireY is where arrows leave and enter a card.
  const wireY = c => transit(c) ? c.y - 16 - half(tubeH) - 5 + 8 : c.y + half(tubeH) + 3;

  // cards groups the steps of a path and follows the tunnel around the packet.
  function cards(p) {
    const all = [], steps = p.steps || [];
    // The packet as it is after the last step: flow and seen are its addresses, as the bytes have
    // them and as the card shows them; tunnel and outer what is around it.
    let c = null, object = "", flow = "", seen = "", tunnel = "", outer = "", inside = false;
    for (const [i, s] of steps.entries()) {
      // A layer that had nothing to say; the list of steps has it.
      if (s.action === "no-match" && !(s.nearest || []).length && !s.reason) continue;
      const changes = s.changes || [];
      if (!c || c.place !== s.place || c.leg !== s.leg) {
        const turned = i > 0 && steps[i - 1].leg !== s.leg;
        c = {place: s.place, leg: s.leg, rows: [], flow: "", changed: false, tunnel: "", outer: "", encIn: inside && !(turned && s.action === "answer"), encOut: false, end: "", endText: ""};
        all.push(c);
        object = "";
        if (turned) flow = seen = ""; // the answer's addresses are the question's, swapped: no rewrite
      }
      // A heading for the object that acts, if it is another one than before.
      let o = line(s.object);
      if (s.port) o = (o + " · port " + line(s.port)).trim() + (s.dir ? " " + line(s.dir) : "");
      if (o !== object && o) {
        c.rows.push({n: 0, head: o});
        object = o;
      }
      if (s.action === "encap") {
        inside = true;
        for (const ch of changes) {
          if (ch.field === "vni") tunnel = "VNI " + line(ch.after);
          if (ch.field === "outer") outer = arrows(line(ch.after));
        }
      } else if (s.action === "decap") inside = false;
      // The addresses are those of the frame, or the simulator's own words where a step has no
      // bytes.
      const f = addresses(s.frame);
      if (f) {
        c.changed = c.changed || flow !== "" && f.flow !== flow;
        flow = seen = f.flow;
        if (f.tunnel) { tunnel = f.tunnel + " · VNI " + f.vni; outer = f.outer; }
      } else if (s.packet) seen = arrows(line(s.packet));
      if (!inside) tunnel = outer = "";
      if (!s.frame && changes.length && s.action === "rewrite") c.changed = true;
      c.rows.push(stepRow(s, changes));
      Object.assign(c, {flow: seen, tunnel, outer, encOut: inside});
      // How the path ends, if it does with this step.
      const last = i === steps.length - 1;
      if (bad(s) && (last || steps[i + 1].leg !== s.leg)) {
        c.end = s.action === "unknown" ? "hole" : "bad";
        c.endText = s.reason || s.action;
      } else if (last && s.action === "deliver") {
        c.end = "good";
        c.endText = s.leg === "reply" ? "reply received" : "delivered";
      } else if (last && p.verdict !== "delivered") {
        c.end = "bad";
        c.endText = p.reason || "";
      }
    }
    return cut(all);
  }

  // cut takes cards out of the middle of a long path, as loops make them.
  function cut(all) {
    if (all.length <= maxCards) return all;
    const head = all.slice(0, maxCards * 2 / 3), tail = all.slice(all.length - maxCards / 3), gone = all.slice(head.length, all.length - tail.length);
    const n = gone.reduce((n, c) => n + c.rows.filter(r => r.n > 0).length, 0);
    return [...head, {place: gone[0].place, leg: gone[0].leg, rows: [{n: 0, head: "… " + n + " steps not drawn"}], flow: "", outer: "", end: ""}, ...tail];
  }

  function stepRow(s, changed) {
    const text = line(s.text), r = {n: s.n, label: line(s.layer), tag: tags[s.action] || "", lines: [], kind: "", tip: text};
    if (!r.label) {
      [r.label, ...r.lines] = wrap(text, wrapAt, 3);
      r.tag = "";
    } else if (s.action !== "allow" && !changed.length) r.lines = wrap(text, wrapAt, 3);
    r.said = r.lines.length;
    r.lines.push(...changeLines(changed));
    if (s.action === "unknown") r.kind = "hole";
    else if (bad(s)) r.kind = "bad";
    else if (changed.length) r.kind = "chg";
    return r;
  }

  // changeLines writes before and after on two lines each; an address and its port are one
  // change.
  function changeLines(changes) {
    const port = {}, addr = {}, out = [];
    for (const c of changes) {
      if (c.field === "src port" || c.field === "dst port") port[c.field.slice(0, 3)] = c;
      if (c.field === "src" || c.field === "dst") addr[c.field] = true;
    }
    for (const c of changes) {
      if (c.field.endsWith(" port") && addr[c.field.slice(0, -5)]) continue;
      let before = line(c.before), after = line(c.after);
      const p = Object.hasOwn(port, c.field) && port[c.field];
      if (p) { before += ":" + line(p.before); after += ":" + line(p.after); }
      let one = c.field + " " + before + " → " + after;
      if (!before) one = c.field + " " + arrows(after);
      else if (!after) one = c.field + " " + before + " removed";
      if (length(one) <= maxChars - 4 || !before || !after) out.push(one);
      else out.push(c.field + " " + before, " ".repeat(length(c.field) - 1) + "→ " + after);
    }
    return out;
  }

  // wrap breaks s at spaces into at most most lines of n characters; what does not fit stays on
  // the last line, which is cut when it is drawn.
  function wrap(s, n, most) {
    const out = [""];
    for (const w of s.split(/\s+/).filter(Boolean)) {
      const last = out.length - 1;
      if (!out[last]) out[last] = w;
      else if (length(out[last]) + 1 + length(w) <= n || out.length === most) out[last] += " " + w;
      else out.push(w);
    }
    return out;
  }

  // layout gives every card a lane (its place, in order of appearance) and a band (a run in
  // which the request only goes right and the reply only left).
  function layout(all) {
    const lanes = [], at = new Map();
    for (const c of all) {
      if (!at.has(c.place)) {
        at.set(c.place, lanes.length);
        lanes.push({name: line(c.place), x: 0, w: 0});
      }
      c.lane = at.get(c.place);
      lanes[c.lane].w = Math.max(lanes[c.lane].w, width(c));
    }
    let x = margin;
    for (const l of lanes) {
      const n = length(l.name) * 8 + 2 * padX;
      if (n > l.w) l.w = Math.min(n, maxChars * charW);
      l.x = x;
      x += l.w + gapX;
    }
    let band = 0;
    for (const [i, c] of all.entries()) {
      const p = all[i - 1];
      if (p && (c.leg !== p.leg || (c.leg === "reply") !== c.lane < p.lane)) band++;
      c.band = band;
    }
    let y = headH + gapY;
    for (let from = 0; from < all.length;) {
      let to = from, high = 0;
      for (; to < all.length && all[to].band === all[from].band; to++) {
        const c = all[to], l = lanes[c.lane];
        Object.assign(c, {x: l.x, y: y + (transit(c) ? tubeH + 16 : 0), w: l.w, h: height(c)});
        high = Math.max(high, c.y - y + c.h + (c.end ? 24 : 0));
      }
      y += high + gapY;
      from = to;
    }
    const bottom = y - gapY + 12;
    return {cards: all, lanes, w: x - gapX + margin, h: bottom + 6, bottom};
  }

  function width(c) {
    let n = minChars;
    const long = (s, extra) => { n = Math.max(n, length(s) + extra); };
    for (const r of c.rows) {
      if (!r.n) { long(r.head, -2); continue; }
      long(r.label, r.tag.length + 2);
      for (const l of r.lines) long(l, 0);
    }
    long(c.flow, -2);
    long(c.outer, 4);
    return Math.min(n, maxChars) * charW + indent + 2 * padX - charW;
  }

  function height(c) {
    let h = 12;
    for (const [i, r] of c.rows.entries()) h += r.n ? rowHeight(r) : lineH + 2 + (i > 0 ? 4 : 0);
    return h + footer(c);
  }

  // describe puts the path into words, for those who do not see it.
  function describe(p) {
    let out = "", place = "", leg = "";
    for (const s of p.steps || []) {
      if (s.leg !== leg) {
        out += s.leg.slice(0, 1).toUpperCase() + s.leg.slice(1) + ": ";
        leg = s.leg; place = "";
      }
      if (s.place !== place) {
        out += "at " + line(s.place) + " ";
        place = s.place;
      }
      out += s.n + " " + line(s.text) + "; ";
    }
    return out + "verdict " + p.verdict + (p.reason ? ", " + p.reason : "");
  }

  const text = (x, y, cls, s) => `<text x="${x}" y="${y}" class="${cls}">${esc(s)}</text>`;

  // join draws the arrow from a to b.
  function join(a, b) {
    const cls = a.leg === "reply" || b.leg === "reply" ? "wa wr" : "wa";
    let x1, x2;
    if (a.band === b.band) {
      const y = transit(b) ? wireY(b) : b.y + half(tubeH) + 3;
      let dir = 1;
      [x1, x2] = [a.x + a.w, b.x];
      if (b.lane < a.lane) [x1, x2, dir] = [a.x, b.x + b.w, -1];
      if (transit(a)) x1 = a.x + half(a.w); // the packet passed above the card, inside the tunnel
      if (transit(b)) {
        x2 = b.x + half(b.w);
        return `<path class="${cls}" d="M${x1} ${y}H${x2}"/><path class="wo" d="M${x2} ${y + half(tubeH)}V${b.y}"/>`;
      }
      return `<path class="${cls}" d="M${x1} ${y}H${x2 - dir * 6}"/><path class="wh" d="M${x2} ${y}l${-dir * 9} -5v10z"/>`;
    }
    // Down through the gutter into the next band.
    [x1, x2] = [a.x + half(a.w), b.x + half(b.w)];
    const y1 = a.y + a.h + (a.end ? 24 : 0), y2 = b.y;
    const head = `<path class="wh" d="M${x2} ${y2}l-5 -9h10z"/>`;
    if (!transit(a) && !transit(b) && a.lane === b.lane) return `<path class="${cls}" d="M${x1} ${y1}V${y2 - 6}"/>` + head;
    const g = (transit(b) ? b.y - tubeH - 16 : b.y) - half(gapY) - 2;
    return `<path class="${cls}" d="M${x1} ${y1}V${g}H${x2}V${y2 - 6}"/>` + head;
  }

  // tubes draws the pipes: from the card that puts the packet into a tunnel to the one that
  // takes it out, over all cards between.
  function tubes(cs) {
    let out = "";
    for (let i = 0; i < cs.length; i++) {
      if (!cs[i].encOut || cs[i].end) continue;
      let j = i + 1;
      while (j < cs.length - 1 && cs[j].band === cs[i].band && transit(cs[j])) j++;
      if (j >= cs.length || cs[j].band !== cs[i].band) continue;
      const a = cs[i], b = cs[j], back = b.lane < a.lane;
      const x1 = back ? b.x + b.w : a.x + a.w, x2 = back ? a.x : b.x;
      const y = wireY(b) - half(tubeH), mid = y + half(tubeH), w = x2 - x1;
      out += `<g class="wt"><rect x="${x1}" y="${y}" width="${w}" height="${tubeH}" rx="4"/><ellipse cx="${x1 + 4}" cy="${mid}" rx="4" ry="${half(tubeH)}"/><ellipse cx="${x2 - 4}" cy="${mid}" rx="4" ry="${half(tubeH)}"/></g>`;
      // The arrow is drawn again, inside.
      const [dir, from, to] = back ? [-1, x2, x1] : [1, x1, x2];
      const n = length(a.tunnel) * charW, head = `<path class="wh" d="M${to} ${mid}l${-dir * 9} -5v10z"/>`;
      if (!a.tunnel || n > w - 34) out += `<path class="wa" d="M${from} ${mid}H${to - dir * 6}"/>` + head; // no room for the name: the card's last line has it
      else {
        const x = half(x1 + x2);
        out += `<path class="wa" d="M${from} ${mid}H${x - dir * (half(n) + 8)}M${x + dir * (half(n) + 8)} ${mid}H${to - dir * 6}"/>` + head +
          `<text x="${x}" y="${mid + 4}" class="wv" text-anchor="middle">${esc(a.tunnel)}</text>`;
      }
      i = j - 1;
    }
    return out;
  }

  function card(c) {
    const cls = c.end === "bad" || c.end === "hole" ? "wc w" + c.end : "wc";
    let out = `<rect x="${c.x}" y="${c.y}" width="${c.w}" height="${c.h}" rx="6" class="${cls}"/>`;
    const room = Math.trunc((c.w - 2 * padX - indent) / charW) + 1;
    let y = c.y + 6;
    for (const [i, r] of c.rows.entries()) {
      if (r.n) {
        out += step(c, r, y, room);
        y += rowHeight(r);
        continue;
      }
      if (i > 0) {
        out += `<path class="wk" d="M${c.x} ${y + 3}h${c.w}"/>`;
        y += 4;
      }
      out += text(c.x + padX, y + lineH - 3, "wd", short(r.head, room + 3));
      y += lineH + 2;
    }
    if (c.flow) {
      out += `<path class="wk" d="M${c.x} ${y + 5}h${c.w}"/>` + text(c.x + padX, y + lineH + 3, c.changed ? "wf wx" : "wf", short(c.flow, room + 3));
      if (c.tunnel) out += text(c.x + padX, y + 2 * lineH + 2, "wf wv", short("in " + c.outer.trim(), room + 3));
    }
    return out + end(c);
  }

  function step(c, r, y, room) {
    const x = c.x + padX, left = x + indent - 4;
    let out = `<g class="ws" data-n="${r.n}"><title>${r.n} ${esc(r.tip)}</title>`;
    if (r.kind) out += `<rect x="${c.x + 2}" y="${y}" width="${c.w - 4}" height="${rowHeight(r)}" class="wb${r.kind}"/>`;
    out += `<circle cx="${x + 6}" cy="${y + 10}" r="8" class="wi${r.kind}"/><text x="${x + 6}" y="${y + 13}" class="wq">${r.n}</text>`;
    if (r.tag) out += `<text x="${c.x + c.w - padX}" y="${y + 14}" class="wu" text-anchor="end">${r.tag}</text>`;
    out += text(left, y + 14, "wm", short(r.label, r.tag ? room - r.tag.length - 1 : room));
    for (const [i, l] of r.lines.entries()) {
      const cls = i >= r.said ? "wx" : r.tag ? "wd" : "wm"; // without a tag the first line goes on
      out += text(left, y + 14 + (i + 1) * (lineH - 2) + 1, cls, short(l, room));
    }
    return out + "</g>";
  }

  // end draws how the path ends: a cross on the way out and a label below.
  function end(c) {
    if (!c.end) return "";
    const y = c.y + c.h + 4, cx = c.x + 13, cy = y + 10;
    let out = `<g class="we${c.end}"><rect x="${c.x}" y="${y}" width="${length(c.endText) * charW + 32}" height="20" rx="10"/>`;
    if (c.end === "good") out += `<path d="M${cx - 4} ${cy}l3 4l6 -8"/>`;
    else if (c.end === "hole") out += `<text x="${cx}" y="${cy + 4}" class="wz" text-anchor="middle">?</text>`;
    else out += `<path d="M${cx - 4} ${cy - 4}l8 8m0 -8l-8 8"/>`;
    out += `<text x="${c.x + 24}" y="${cy + 4}" class="wz">${esc(c.endText)}</text></g>`;
    if (c.end !== "bad") return out;
    const dir = c.leg === "reply" ? -1 : 1, x = dir < 0 ? c.x : c.x + c.w, wy = wireY(c);
    return out + `<path class="wa" d="M${x} ${wy}h${dir * 12}"/><path class="wcross" d="M${x + dir * 20 - 6} ${wy - 6}l12 12m0 -12l-12 12"/>`;
  }

  return p => {
    const pic = layout(cards(p)), none = !pic.cards.length;
    if (none) [pic.w, pic.h] = [320, 60];
    let out = `<svg class="wl" role="img" viewBox="0 0 ${pic.w} ${pic.h}" width="${pic.w}" height="${pic.h}"><title>${esc((p.verdict + " " + (p.reason || "")).trim())}</title><desc>${esc(describe(p))}</desc>`;
    if (none) out += text(16, 36, "wd", "no packet was sent");
    for (const [i, l] of pic.lanes.entries())
      out += `<rect x="${l.x - 10}" y="4" width="${l.w + 20}" height="${pic.bottom - 4}" rx="8" class="wl${i % 2}"/>` + text(l.x, 24, "wn", short(l.name, Math.trunc(l.w / 8)));
    for (const [i, c] of pic.cards.entries()) if (i > 0) out += join(pic.cards[i - 1], c);
    out += tubes(pic.cards);
    for (const [i, c] of pic.cards.entries()) {
      out += card(c);
      if (i === 0 || pic.cards[i - 1].leg !== c.leg) out += text(c.x + 2, c.y - 7, "wg", c.leg === "reply" ? "reply" : "request");
    }
    return out + "</svg>";
  };
})();

// ipv6 writes the 16 bytes from b[i] on (RFC 5952).
function ipv6(b, i) {
  const g = [0, 2, 4, 6, 8, 10, 12, 14].map(k => (b[i + k] << 8 | b[i + k + 1]).toString(16));
  if (g.slice(0, 6).join() === "0,0,0,0,0,ffff") return "::ffff:" + b.slice(i + 12, i + 16).join(".");
  let at = -1, n = 1;
  for (let k = 0; k < 8; k++) { let j = k; while (j < 8 && g[j] === "0") j++; if (j - k > n) { at = k; n = j - k; } }
  return at < 0 ? g.join(":") : g.slice(0, at).join(":") + "::" + g.slice(at + n).join(":");
}

// addresses reads addresses and ports from an Ethernet frame in base64: flow is
// "10.0.0.1:80 → 10.0.0.2:49158", of the inner packet when there is a tunnel; tunnel is "VXLAN",
// "Geneve" or "", vni its identifier, outer its addresses. It is null for anything else.
function addresses(b64) {
  const out = b64 && ipAddresses(Uint8Array.from(atob(b64), c => c.charCodeAt(0)));
  if (!out) return null;
  // The UDP ports by which a tunnel is recognised: RFC 7348 and the Linux kernel's older default
  // for VXLAN, RFC 8926 for Geneve.
  const data = out.payload || [], vni = data[4] << 16 | data[5] << 8 | data[6];
  let tunnel = "", inner;
  if ((out.port === 4789 || out.port === 8472) && data.length > 8) { tunnel = "VXLAN"; inner = data.slice(8); }
  else if (out.port === 6081 && data.length > 8 + (data[0] & 63) * 4) { tunnel = "Geneve"; inner = data.slice(8 + (data[0] & 63) * 4); }
  const within = tunnel && ipAddresses(inner);
  return within ? {flow: within.flow, tunnel, vni, outer: out.flow} : {flow: out.flow, tunnel: ""};
}

// ipAddresses reads one Ethernet and IP header; of UDP it has the destination port and the
// payload. It is null for anything else.
function ipAddresses(b) {
  const u16 = i => b[i] << 8 | b[i + 1];
  if (b.length < 14) return null;
  let at = 14, type = u16(12);
  if (type === 0x8100 && b.length >= 18) { type = u16(16); at = 18; } // VLAN
  const left = b.length - at;
  let src, dst, protocol;
  if (type === 0x0800 && left >= 20 && b[at] >> 4 === 4) {
    const n = (b[at] & 15) * 4;
    if (n < 20 || left < n) return null;
    [src, dst, protocol] = [b.slice(at + 12, at + 16).join("."), b.slice(at + 16, at + 20).join("."), b[at + 9]];
    at += n;
  } else if (type === 0x86dd && left >= 40 && b[at] >> 4 === 6) {
    [src, dst, protocol] = [ipv6(b, at + 8), ipv6(b, at + 24), b[at + 6]];
    at += 40;
  } else return null;
  if (protocol !== 6 && protocol !== 17 || b.length - at < 4) return {flow: src + " → " + dst};
  const end = (a, p) => (a.includes(":") ? "[" + a + "]" : a) + ":" + p;
  const flow = end(src, u16(at)) + " → " + end(dst, u16(at + 2));
  return protocol === 17 && b.length - at >= 8 ? {flow, port: u16(at + 2), payload: b.slice(at + 8)} : {flow};
}

// findTurn finds the first stretch of steps that repeats at least three times in a row, as a
// packet that goes round in circles leaves it: steps[from] to steps[from+len-1] happen times
// times. Numbers, packets and remaining hops may differ. It is null for none.
function findTurn(steps) {
  const same = (x, y) => ["leg", "place", "object", "port", "dir", "layer", "rule", "action", "reason", "text"].every(k => (x[k] || "") === (y[k] || ""));
  for (let from = 0; from < steps.length; from++)
    for (let len = 1; from + 3 * len <= steps.length; len++) {
      let n = len; // steps that are as those a turn before
      while (from + n < steps.length && same(steps[from + n - len], steps[from + n])) n++;
      const times = Math.trunc(n / len);
      if (times >= 3) return {from, len, times};
    }
  return null;
}

// drawing draws a path; of a loop one turn.
function drawing(p, turn) {
  if (!turn) return draw(p);
  return draw({...p, steps: [...p.steps.slice(0, turn.from + turn.len), ...p.steps.slice(turn.from + turn.len * turn.times)]});
}
