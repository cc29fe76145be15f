// Puts the server's words into the page. Text goes in as text: nothing of a phone becomes markup.
"use strict";

const CELLS = ["phase", "time", "context", "trims", "memory", "speed", "thermal", "battery", "last"];
const LABELS = ["Phase", "Ran / left", "Context / budget", "Trims / evictions", "Memory / limit", "Tokens/s", "Thermal", "Battery", "Last event"];
const SHARES = { time: "time_share", context: "context_share", memory: "memory_share" };
const FULL = 0.9;
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const rows = new Map();
let alarmed = "";

function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function element(name, parent, className) {
  const made = document.createElement(name);
  if (className) made.className = className;
  parent.append(made);
  return made;
}

function newRow() {
  const row = document.createElement("tr");
  const head = element("th", row);
  head.scope = "row";
  const parts = { row, alias: element("span", head), model: element("small", head), bars: {} };
  CELLS.forEach((name, index) => {
    const cell = element("td", row, name);
    cell.dataset.label = LABELS[index];
    if (name === "last") parts.concern = element("strong", cell);
    parts[name] = element("span", cell);
    if (name in SHARES) {
      const track = element("span", cell, "bar");
      track.setAttribute("aria-hidden", "true");
      parts.bars[name] = { track, fill: element("span", track) };
    }
    if (name === "speed") parts.course = course(cell);
  });
  return parts;
}

function course(cell) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 100 20");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "polyline");
  svg.append(line);
  cell.append(svg);
  return line;
}

function points(speeds) {
  const top = Math.max(...speeds, 1e-9);
  const step = speeds.length > 1 ? 100 / (speeds.length - 1) : 0;
  return speeds.map((speed, index) => `${(index * step).toFixed(1)},${(19 - 18 * speed / top).toFixed(1)}`).join(" ");
}

function showPhone(parts, phone) {
  parts.row.className = `${phone.level} ${phone.outcome || ""}`.trim();
  put(parts.alias, phone.alias);
  put(parts.model, phone.model);
  put(parts.concern, phone.concern);
  parts.concern.hidden = !phone.concern;
  for (const name of CELLS) put(parts[name], phone[name]);
  for (const [name, bar] of Object.entries(parts.bars)) {
    const share = phone[SHARES[name]];
    bar.track.hidden = share === null;
    bar.track.classList.toggle("over", name === "memory" && share >= FULL);
    bar.fill.style.width = `${100 * (share || 0)}%`;
  }
  parts.course.parentNode.style.visibility = phone.speeds.length > 1 ? "visible" : "hidden";
  parts.course.setAttribute("points", points(phone.speeds));
}

function showPhones(phones) {
  const body = byId("phones");
  const kept = new Set();
  phones.forEach((phone, index) => {
    let key = phone.alias;
    while (kept.has(key)) key += " again";  // names are not unique
    const parts = rows.get(key) || newRow();
    rows.set(key, parts);
    kept.add(key);
    showPhone(parts, phone);
    // Rows move only when their order changed: a selection or a screen reader's place stays.
    if (body.children[index] !== parts.row) body.insertBefore(parts.row, body.children[index] || null);
  });
  for (const [key, parts] of rows) {
    if (!kept.has(key)) {
      parts.row.remove();
      rows.delete(key);
    }
  }
}

function sayAlarms(phones) {
  const loud = phones.filter((phone) => phone.level === "alarm" || phone.level === "failed");
  const said = loud.map((phone) => phone.alias).join(", ");
  if (said !== alarmed) put(byId("alarms"), said ? `Needs a look: ${said}` : "All phones are calm");
  alarmed = said;
}

function showRun(view) {
  document.title = `${view.outcome || view.state} · fleet ${view.run_id}`;
  byId("banner").className = view.outcome || "";
  put(byId("state"), view.outcome || view.state);
  put(byId("run"), view.run_id);
  put(byId("line"), `${view.line}.`);
  put(byId("counts"), view.counts);
  put(byId("origin"), view.origin);
  byId("origin").hidden = !view.origin;
  byId("report").hidden = !view.outcome;
  const percent = Math.round(100 * (view.share || 0));
  byId("progress").setAttribute("aria-valuenow", String(percent));
  byId("progress").firstElementChild.style.width = `${percent}%`;
  showPhones(view.phones);
  sayAlarms(view.phones);
}

function trouble(text) {
  put(byId("trouble"), text);
  byId("trouble").hidden = !text;
}

const events = new EventSource("events");
events.addEventListener("run", (event) => { trouble(""); showRun(JSON.parse(event.data)); });
events.addEventListener("trouble", (event) => trouble(JSON.parse(event.data).error));
events.addEventListener("error", () => trouble("The connection to fleet serve is lost; what is shown is old. Trying again."));
