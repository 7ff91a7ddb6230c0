// An incident: broken and fixed side by side, with the step at which they part, and what a
// reader takes away: the frames as a capture, and the path as a drawing.
async function sideBySide(f) {
  if (!(f.twins || []).length) return null;
  return h("section", {}, f.twins.map(t => {
    const other = index.flows[t.flow], box = h("div", {class: "both"});
    const side = async (x, n) => {
      const view = await traceView(x.trace, {noCommand: true}), li = n && $('.step[data-n="' + n + '"]', view);
      if (li) { li.classList.add("parted"); $(".s-head", li).prepend(h("span", {class: "parts"}, "parts here")); }
      return h("section", {class: "half", "aria-label": x.variant}, h("h3", {}, h("span", {class: "variant v-" + x.variant}, x.variant), " ", verdict(x.got, x.reason)), x.variantTitle && h("p", {}, x.variantTitle),
        h("p", {class: "parts-at"}, n ? "They part at step " + n + "." : "It ends where the other goes on."), view);
    };
    const fill = async () => {
      if (box.childElementCount) return;
      panel.classList.add("wide-panel");
      try { box.append(await side(f, t.here), await side(other, t.there)); } catch (e) { box.append(failure(e)); }
    };
    const alike = !t.here && !t.there;
    return h("details", {class: "fold", ontoggle: e => { if (e.currentTarget.open) fill(); else panel.classList.remove("wide-panel"); }},
      h("summary", {}, h("b", {}, f.variant + " and " + other.variant + " side by side"), " ", h("small", {}, alike ? "the packet goes the same way in both" : t.here ? "they part at step " + t.here + " here" : "this one ends first")), box);
  }));
}

// pcapng is a capture of the frames of a path, with a comment that says where each was seen.
function pcapng(steps) {
  const blocks = [];
  const le = (n, bytes) => Array.from({length: bytes}, (_, i) => Math.floor(n / 256 ** i) % 256);
  const pad = a => [...a, ...Array((4 - a.length % 4) % 4).fill(0)];
  const block = (type, body) => { const n = 12 + body.length; blocks.push(...le(type, 4), ...le(n, 4), ...body, ...le(n, 4)); };
  block(0x0a0d0d0a, [...le(0x1a2b3c4d, 4), ...le(1, 2), ...le(0, 2), ...Array(8).fill(255)]);
  block(1, [...le(1, 2), ...le(0, 2), ...le(0, 4)]);
  for (const [i, s] of steps.entries()) {
    const frame = [...atob(s.frame)].map(c => c.charCodeAt(0)), said = [...new TextEncoder().encode("step " + s.n + ", " + s.place + " " + (s.object || "") + ": " + s.text)];
    block(6, [...le(0, 4), ...le(0, 4), ...le(i * 1000, 4), ...le(frame.length, 4), ...le(frame.length, 4), ...pad(frame), ...le(1, 2), ...le(said.length, 2), ...pad(said), ...le(0, 4)]);
  }
  return Uint8Array.from(blocks);
}
const base64 = bytes => { let s = ""; for (const b of bytes) s += String.fromCharCode(b); return btoa(s); };

// takeAway has the links to both files; they are in the address of the link itself.
async function takeAway(f) {
  const t = await traceItem(f.trace), paths = await Promise.all((t.paths || []).map(item));
  const name = [f.lab, f.variant, f.name].filter(Boolean).join("-").replace(/[^A-Za-z0-9]+/g, "-");
  const links = paths.flatMap((p, i) => {
    const at = paths.length > 1 ? " of path " + (i + 1) : "", frames = (p.steps || []).filter(s => s.frame), file = name + (paths.length > 1 ? "-" + (i + 1) : "");
    return [frames.length > 0 && h("a", {class: "chip", download: file + ".pcapng", href: "data:application/octet-stream;base64," + base64(pcapng(frames))}, frames.length + " frames" + at + " (.pcapng)"),
      h("a", {class: "chip", download: file + ".svg", href: "data:image/svg+xml;base64," + base64(new TextEncoder().encode(drawing(p, findTurn(p.steps || []))))}, "drawing" + at + " (.svg)")];
  }).filter(Boolean);
  return links.length > 0 && h("p", {class: "take"}, h("span", {class: "dim"}, "take away: "), links.map(l => [l, " "]));
}
