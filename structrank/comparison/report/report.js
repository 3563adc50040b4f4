
"use strict";
// Everything that comes from the data is set as text, never as HTML.

const contents = JSON.parse(document.getElementById("contents").textContent);
const { trainers, measures, columns, cells, datasets, relevantFrom, nTop } = contents;

// ---- Elements

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}
const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svgNamespace = document.getElementById("any-svg").namespaceURI;
const drawn = (tag, attributes = {}, ...children) => fill(document.createElementNS(svgNamespace, tag), attributes, children);
const plural = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(3)}`;

// ---- Sorting: the best first, then the worst first, then as it was

function makeSortable(table) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const isNumber = head.classList.contains("number");
    const [first, second] = isNumber ? ["descending", "ascending"] : ["ascending", "descending"];
    const next = { none: first, [first]: second, [second]: "none" };
    const key = (row) => {
      const cell = row.cells[column];
      if (!isNumber) return cell.textContent.trim();
      return cell.dataset.value === "" ? null : Number(cell.dataset.value);
    };
    const compare = isNumber ? (a, b) => a - b : (a, b) => a.localeCompare(b);
    head.querySelector("button").addEventListener("click", () => {
      const order = next[head.getAttribute("aria-sort")];
      heads.forEach((other) => other.setAttribute("aria-sort", other === head ? order : "none"));
      const rows = [...original];
      const sign = order === "ascending" ? 1 : -1;
      if (order !== "none") {
        rows.sort((a, b) => {
          const [left, right] = [key(a), key(b)];
          if (left === null || right === null) return (left === null) - (right === null); // undefined is last
          return sign * compare(left, right);
        });
      }
      body.append(...rows);
    });
  });
}

// ---- Figures

const ROW = 24;
const AXIS = 26;

/** Give about four round numbers between two others. */
function ticksBetween(low, high) {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [0.5, 1, 2, 5, 10].map((factor) => factor * power);
  const between = (step) => {
    const ticks = [];
    for (let number = Math.ceil(low / step - 1e-9); number * step <= high + 1e-9 * step; number++) ticks.push(number * step);
    return { ticks, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  };
  const place = steps.findIndex((size) => size >= rough);
  const found = between(steps[place]);
  return found.ticks.length < 3 ? between(steps[place - 1]) : found;
}

/** Leave out ticks whose texts would touch. */
function apart(ticks) {
  let last = -Infinity;
  return ticks.filter(({ at, text }) => {
    const half = pen.measureText(text).width / 2;
    const fits = at - half > last + 4;
    if (fits) last = at + half;
    return fits;
  });
}

const pen = document.createElement("canvas").getContext("2d");
pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;

/** Cut a text to a width in pixels. */
function shortened(text, width) {
  if (pen.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}

/** Draw one row for each trainer, names on the left; `paint` draws a row between two x. */
function panel(width, label, names, ticks, paint) {
  const left = Math.min(Math.max(...names.map((name) => pen.measureText(name).width)) + 14, width * 0.55);
  const right = width - 14;
  const height = names.length * ROW + AXIS;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  for (const { at, text } of ticks(left, right)) {
    svg.append(
      drawn("line", { class: "axis", x1: at, x2: at, y1: 0, y2: height - AXIS + 4 }),
      drawn("text", { class: "tick", x: at, y: height - 8, "text-anchor": "middle" }, text),
    );
  }
  names.forEach((name, number) => {
    const y = number * ROW + ROW / 2;
    const text = drawn("text", { x: left - 12, y: y + 4, "text-anchor": "end" }, shortened(name, left - 14));
    text.append(drawn("title", {}, name));
    svg.append(text);
    paint(svg, number, y, left, right);
  });
  return svg;
}

function meansPanel(column, width) {
  const known = column.rows.filter((row) => row.mean !== null);
  const lows = known.map((row) => Math.max(0, row.mean - (row.margin ?? 0)));
  const highs = known.map((row) => Math.min(1, row.mean + (row.margin ?? 0)));
  let [low, high] = known.length ? [Math.min(...lows), Math.max(...highs)] : [0, 1];
  if (high - low < 0.02) [low, high] = [Math.max(0, low - 0.02), Math.min(1, high + 0.02)];
  const { ticks, digits } = ticksBetween(low, high);
  const scale = (value, left, right) => left + ((Math.min(high, Math.max(low, value)) - low) / (high - low)) * (right - left);
  const label = `${column.measure} on ${column.dataset} by trainer`;
  const axis = (left, right) => apart(ticks.map((tick) => ({ at: scale(tick, left, right), text: tick.toFixed(digits) })));
  return panel(width, label, trainers, axis, (svg, number, y, left, right) => {
    const { mean, margin, mark } = column.rows[number];
    if (mean === null) {
      svg.append(drawn("text", { class: "tick", x: left + 4, y: y + 4 }, "undefined"));
      return;
    }
    const below = mark.includes("<");
    const at = (value) => scale(value, left, right);
    if (margin !== null) {
      const ends = { x1: at(mean - margin), x2: at(mean + margin), y1: y, y2: y };
      svg.append(drawn("line", { class: below ? "interval low" : "interval", ...ends }));
    }
    const interval = margin === null ? "" : ` ± ${margin.toFixed(3)}`;
    const radius = mark.startsWith("**") ? 6 : 4.5;
    const dot = drawn("circle", { class: below ? "dot hollow" : "dot", cx: at(mean), cy: y, r: radius });
    dot.append(drawn("title", {}, `${trainers[number]}: ${mean.toFixed(4)}${interval}`));
    svg.append(dot);
  });
}

function chosenPanel(dataset, width) {
  const here = cells.filter((cell) => cell.dataset === dataset.name);
  const values = [...new Set(cells.map((cell) => cell.C).filter((C) => C !== null))].sort((a, b) => a - b);
  const logs = values.map(Math.log10);
  let [low, high] = [Math.min(...logs), Math.max(...logs)];
  if (high - low < 1) [low, high] = [low - 0.5, high + 0.5];
  const scale = (C, left, right) => left + 6 + ((Math.log10(C) - low) / (high - low)) * (right - left - 12);
  const powers = [];
  for (let power = Math.ceil(low); power <= high; power++) powers.push(10 ** power);
  const axis = (left, right) =>
    apart((powers.length > 1 ? powers : values).map((C) => ({ at: scale(C, left, right), text: String(Number(C.toPrecision(3))) })));
  return panel(width, `Chosen C on ${dataset.name} by trainer`, trainers, axis, (svg, number, y, left, right) => {
    const counts = new Map();
    for (const cell of here) {
      if (cell.trainer === trainers[number]) counts.set(cell.C, (counts.get(cell.C) ?? 0) + 1);
    }
    for (const [C, count] of counts) {
      if (C === null) {
        svg.append(drawn("text", { class: "tick", x: left + 4, y: y + 4 }, "has no C"));
        continue;
      }
      const at = scale(C, left, right);
      const dot = drawn("circle", { class: "dot", cx: at, cy: y, r: count > 1 ? 8 : 4.5 });
      dot.append(drawn("title", {}, `${trainers[number]}: C = ${C}, ${plural(count, "fold", "folds")}`));
      svg.append(dot);
      if (count > 1) svg.append(drawn("text", { class: "in-dot", x: at, y: y + 3.5, "text-anchor": "middle" }, `${count}`));
    }
  });
}

function secondsPanel(dataset, width) {
  const totals = trainers.map((name) =>
    cells
      .filter((cell) => cell.dataset === dataset.name && cell.trainer === name)
      .reduce((sum, cell) => sum + cell.seconds, 0),
  );
  const most = Math.max(...totals, 1e-9);
  const least = Math.max(Math.min(...totals), most * 1e-6);
  // Bars of very different times are visible only on a logarithmic axis, which has ticks.
  const isLogarithmic = most / least > 30;
  const start = Math.floor(Math.log10(least) - 0.2);
  const share = (seconds) =>
    isLogarithmic ? Math.max(0, Math.log10(Math.max(seconds, least)) - start) / (Math.log10(most) - start) : seconds / most;
  const lengthOf = (seconds, left, right) => share(seconds) * (right - left - 48);
  const axis = (left, right) => {
    const ticks = [];
    for (let power = start; isLogarithmic && 10 ** power <= most; power++) {
      ticks.push({ at: left + lengthOf(10 ** power, left, right), text: String(Number((10 ** power).toPrecision(1))) });
    }
    return apart(ticks);
  };
  const text = (seconds) => `${seconds < 9.95 ? Number(seconds).toPrecision(2) : Math.round(seconds)} s`;
  return panel(width, `Training seconds on ${dataset.name} by trainer`, trainers, axis, (svg, number, y, left, right) => {
    const length = lengthOf(totals[number], left, right);
    svg.append(
      drawn("rect", { class: "bar", x: left, y: y - 6, width: Math.max(1, length), height: 12, rx: 1.5 }),
      drawn("text", { x: left + length + 6, y: y + 4 }, text(totals[number])),
    );
  });
}

/** Put titled drawings into a box, and draw them again when its width changes. */
function showPanels(box, panels) {
  const places = panels.map(({ title, draw }) => {
    const place = element("div", {}, element("h4", {}, title));
    box.append(place);
    return { place, draw, width: 0 };
  });
  const redraw = () => {
    for (const item of places) {
      const width = Math.floor(item.place.clientWidth);
      if (width === item.width || width === 0) continue;
      item.width = width;
      item.place.querySelector("svg")?.remove();
      item.place.append(item.draw(width));
    }
  };
  redraw();
  new ResizeObserver(redraw).observe(box);
}

// ---- Query by query

const N_SHOWN = 10;
const N_MORE = 50;
const atFirst = () => ({ gain: N_SHOWN, loss: N_SHOWN });

function makeExplorer(root) {
  if (trainers.length < 2) {
    root.append(element("p", { class: "quiet" }, "Only one trainer: nothing to compare."));
    return;
  }
  const choice = { dataset: 0, measure: 0, ...firstPair(), query: null, shown: atFirst(), wanted: "" };
  const select = (label, name, options) => {
    const box = element("select", { id: `choose-${name}` });
    options.forEach((text, number) => box.append(element("option", { value: number }, text)));
    box.addEventListener("change", () => {
      if (name === "dataset") choice.query = null;
      choice[name] = Number(box.value);
      choice.shown = atFirst();
      update();
      keepLink();
    });
    return { name, box, label: element("label", {}, label, box) };
  };
  const selects = [
    select("Data set", "dataset", datasets.map((dataset) => dataset.name)),
    select("Measure", "measure", measures),
    select("From", "from", trainers),
    select("To", "to", trainers),
  ];
  const swap = element("button", { type: "button", class: "plain", id: "swap" }, "Swap");
  swap.addEventListener("click", () => {
    [choice.from, choice.to] = [choice.to, choice.from];
    choice.shown = atFirst();
    update();
    keepLink();
  });
  const find = element("input", { type: "search", id: "find", autocomplete: "off", placeholder: "part of its id" });
  find.addEventListener("input", () => {
    choice.wanted = find.value.trim();
    showFound();
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") found.querySelector("button")?.click();
  });
  const controls = element("div", { class: "controls" });
  controls.append(...selects.filter(({ name }) => name !== "dataset" || datasets.length > 1).map(({ label }) => label), swap);
  controls.append(element("label", {}, "Find a query", find));
  const found = element("div", { id: "found", "aria-live": "polite" });
  const overview = element("div", { id: "overview", "aria-live": "polite" });
  const lists = element("div", { class: "two", id: "changes" });
  const detail = element("div", { id: "detail" });
  root.append(controls, found, overview, lists, detail);
  let changes = [];
  let width = 0;

  function update() {
    for (const { name, box } of selects) box.value = choice[name];
    const dataset = datasets[choice.dataset];
    changes = changesOf(dataset, choice);
    overview.replaceChildren(sentence(dataset, choice));
    drawStrip();
    showFound();
    lists.replaceChildren(
      list("gain", `Queries that gain with ${trainers[choice.to]}`, changes, dataset, choice, open, more),
      list("loss", `Queries that lose with ${trainers[choice.to]}`, changes.slice().reverse(), dataset, choice, open, more),
    );
    detail.replaceChildren();
    if (choice.query !== null) detail.append(queryBox(dataset, choice));
  }
  function drawStrip() {
    width = Math.floor(overview.clientWidth);
    overview.querySelector("svg")?.remove();
    const haveChanged = changes.some(({ change }) => change !== 0);
    if (haveChanged && width) overview.append(strip(changes, datasets[choice.dataset], width, open));
  }
  function more(kind) {
    const first = choice.shown[kind];
    choice.shown[kind] += N_MORE;
    update();
    lists.querySelectorAll(`[data-kind="${kind}"] button`)[first].focus();
  }
  function showFound() {
    found.replaceChildren();
    if (choice.wanted) found.append(foundList(datasets[choice.dataset], choice, open));
  }
  function keepLink() {
    if (choice.query !== null) history.replaceState(null, "", linkTo(choice));
    else if (isQueryLink(location.hash)) history.replaceState(null, "", "#queries");
  }
  function show() {
    update();
    const head = detail.querySelector("h3");
    head.focus({ preventScroll: true });
    head.scrollIntoView({ block: "start" });
  }
  function open(place) {
    choice.query = place;
    show();
    const link = linkTo(choice);
    if (location.hash !== link) history.pushState(null, "", link);
  }
  function follow() {
    if (!isQueryLink(location.hash)) return;
    const linked = readLink(location.hash);
    Object.assign(choice, linked, { shown: atFirst() });
    if (choice.query !== null) show();
    else {
      update();
      const text = "The query of this link is not in this report.";
      detail.append(element("p", { class: "quiet", role: "status" }, text));
      detail.scrollIntoView({ block: "center" });
    }
  }
  update();
  follow();
  window.addEventListener("hashchange", follow);
  new ResizeObserver(() => {
    if (Math.floor(overview.clientWidth) !== width) drawStrip();
  }).observe(root);
}

// ---- Links: #query-ID, with the data set and the fold where there are several, and what is compared

const isQueryLink = (hash) => hash.startsWith("#query-");

function linkTo({ dataset, measure, from, to, query }) {
  const { ids, folds, name, nFolds } = datasets[dataset];
  const parts = { data: datasets.length > 1 ? name : null, fold: nFolds > 1 ? folds[query] + 1 : null };
  Object.assign(parts, { measure: measures[measure], from: trainers[from], to: trainers[to] });
  const known = Object.entries(parts).filter(([, value]) => value !== null);
  return `#query-${encode(ids[query])}${known.map(([key, value]) => `&${key}=${encode(value)}`).join("")}`;
}

/** Encode for a link; halves of surrogate pairs have no UTF-8. */
const encode = (value) => encodeURIComponent(String(value).replace(/\p{Surrogate}/gu, "\ufffd"));

/** Give the choice that a link stands for; `query` is null if it is not in the report. */
function readLink(hash) {
  const [id, ...rest] = hash.slice("#query-".length).split("&");
  const parts = Object.fromEntries(rest.map((part) => part.split("=")));
  const placeOf = (names, key) => names.findIndex((name) => encode(name) === parts[key]);
  const linked = {};
  for (const [key, names] of [["measure", measures], ["from", trainers], ["to", trainers]]) {
    if (placeOf(names, key) >= 0) linked[key] = placeOf(names, key);
  }
  const isMeant = (dataset, place) =>
    encode(dataset.ids[place]) === id && (parts.fold === undefined || dataset.folds[place] === Number(parts.fold) - 1);
  const names = datasets.map(({ name }) => name);
  for (const [number, dataset] of datasets.entries()) {
    const query = dataset.ids.findIndex((_, place) => isMeant(dataset, place));
    const isHere = parts.data === undefined || placeOf(names, "data") === number;
    if (query >= 0 && isHere) return { ...linked, dataset: number, query };
  }
  return { ...linked, query: null };
}

/** Start with the first trainer and the best of the first column. */
function firstPair() {
  const means = columns[0].rows.map((row) => row.mean ?? -1);
  const to = means.indexOf(Math.max(...means));
  return { from: to === 0 ? 1 : 0, to };
}

/** Give the queries for which both values are known, the largest gain first. */
function changesOf(dataset, { measure, from, to }) {
  const [before, after] = [dataset.values[measure][from], dataset.values[measure][to]];
  return dataset.ids
    .map((id, place) => ({ id, place, before: before[place], after: after[place], change: after[place] - before[place] }))
    .filter(({ before, after }) => before !== null && after !== null)
    .sort((a, b) => b.change - a.change || a.place - b.place);
}

function sentence(dataset, { measure, from, to }) {
  const [gained, lost] = dataset.counts[measure][from][to];
  const undefinedOnes = dataset.undefined[measure];
  const same = dataset.nQueries - undefinedOnes - gained - lost;
  const parts = [`gain for ${plural(gained, "query", "queries")}`, `loss for ${lost.toLocaleString("en")}`];
  parts.push(`no change for ${same.toLocaleString("en")}`);
  if (undefinedOnes) parts.push(`undefined for ${undefinedOnes.toLocaleString("en")}`);
  const [a, b] = [trainers[from], trainers[to]].map((name) => element("b", {}, name));
  return element("p", {}, `${measures[measure]} on ${dataset.name}, from `, a, " to ", b, `: ${parts.join(", ")}.`);
}

/** Give the largest change, up or down, of a list that is sorted by change. */
const largest = (changes) => Math.max(Math.abs(changes[0].change), Math.abs(changes[changes.length - 1].change));

/** Draw the changes in order, one bar a query, or as many as there are pixels. */
function strip(all, dataset, width, open) {
  const every = Math.ceil(all.length / width);
  const changes = all.filter((_, number) => number % every === 0 || number === all.length - 1);
  const most = largest(all);
  const above = 44 * Math.max(0, changes[0].change / most) + 2;
  const below = 44 * Math.max(0, -changes[changes.length - 1].change / most) + 2;
  const height = above + below;
  const step = width / changes.length;
  const label = `Change of ${every > 1 ? `one query in ${every}` : "each query"}, the largest gain first`;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  svg.append(drawn("line", { class: "axis", x1: 0, x2: width, y1: above, y2: above }));
  changes.forEach(({ place, change }, number) => {
    if (change === 0) return;
    const size = (44 * Math.abs(change)) / most;
    const bar = drawn("rect", {
      class: change > 0 ? "gain" : "loss",
      x: number * step,
      y: change > 0 ? above - size : above,
      width: Math.max(0.5, step - (step > 3 ? 1 : 0)),
      height: size,
      "data-place": place,
      onclick: () => open(place),
    });
    bar.append(drawn("title", {}, `${queryName(dataset, place)}: ${signed(change)}`));
    svg.append(bar);
  });
  return svg;
}

function queryName(dataset, place) {
  const fold = dataset.nFolds > 1 ? `, fold ${dataset.folds[place] + 1}` : "";
  return `Query ${dataset.ids[place]}${fold}`;
}

/** List the queries that gained (or lost), the largest change first. */
function list(kind, title, changes, dataset, choice, open, more) {
  const wanted = changes.filter(({ change }) => (kind === "gain" ? change > 0 : change < 0));
  const items = element("ol", { class: "changes", "data-kind": kind });
  for (const entry of wanted.slice(0, choice.shown[kind])) items.append(listItem(entry, largest(changes), dataset, choice, open));
  const box = element("div", {}, element("h3", {}, title), items);
  if (!wanted.length) box.append(element("p", { class: "quiet" }, "None."));
  const left = wanted.length - items.children.length;
  if (left > 0) {
    const button = element("button", { type: "button", class: "plain", onclick: () => more(kind) });
    button.append(left <= N_MORE ? `Show the remaining ${plural(left, "query", "queries")}` : `Show ${N_MORE} more of ${left} queries`);
    box.append(button);
  }
  return box;
}

/** Give a query with its change, as a button that opens it. */
function listItem({ place, before, after, change }, most, dataset, choice, open) {
  const isKnown = before !== null && after !== null;
  const bar = element("span", { class: `fill ${change > 0 ? "gain" : "loss"}`, hidden: !isKnown || change === 0 ? "" : null });
  bar.style.width = `${(100 * Math.abs(change)) / most}%`;
  const values = element("small", {}, isKnown ? `${before.toFixed(3)} → ${after.toFixed(3)}` : "undefined");
  const button = element(
    "button",
    { type: "button", "aria-pressed": String(place === choice.query), "data-place": place, onclick: () => open(place) },
    element("span", { class: "id" }, queryName(dataset, place), values),
    element("span", { class: "track", "aria-hidden": "true" }, bar),
    element("span", { class: "amount" }, isKnown ? signed(change) : "–"),
  );
  return element("li", {}, button);
}

/** List the queries whose id contains what was typed: equal ids first, then those that start with it. */
function foundList(dataset, choice, open) {
  const wanted = choice.wanted.toLowerCase();
  const [before, after] = [choice.from, choice.to].map((trainer) => dataset.values[choice.measure][trainer]);
  const distance = (id) => (id === wanted ? 0 : id.startsWith(wanted) ? 1 : 2);
  const hits = dataset.ids
    .map((id, place) => ({ id: String(id).toLowerCase(), place, before: before[place], after: after[place] }))
    .filter(({ id }) => id.includes(wanted))
    .map((entry) => ({ ...entry, change: entry.after - entry.before }))
    .sort((a, b) => distance(a.id) - distance(b.id) || a.place - b.place);
  const shown = hits.slice(0, N_SHOWN);
  const most = Math.max(...shown.map(({ change }) => Math.abs(change)), 1e-9);
  const items = element("ol", { class: "changes", "data-kind": "found" });
  items.append(...shown.map((entry) => listItem(entry, most, dataset, choice, open)));
  const rest = hits.length > N_SHOWN ? `; the first ${N_SHOWN}, type more to see others` : "";
  return element("div", {}, element("p", { class: "quiet" }, `${plural(hits.length, "query", "queries")} found${rest}.`), items);
}

/** Show one query: what every measure says of both rankings, and the rankings. */
function queryBox(dataset, choice) {
  const ranking = dataset.rankings[choice.query];
  const box = element("section", { class: "detail", "aria-label": "Chosen query" });
  const link = element("a", { class: "permalink", href: linkTo(choice), title: "link to this query and these trainers" }, "Link");
  box.append(element("div", { class: "title" }, element("h3", { tabindex: "-1" }, queryName(dataset, choice.query)), link));
  if (ranking) {
    const relevant = `${ranking.nRelevant.toLocaleString("en")} relevant`;
    const rule = relevantFrom === null ? "label above 0" : `label of at least ${relevantFrom}`;
    box.append(element("p", {}, `${plural(ranking.nDocs, "document", "documents")}, ${relevant} (${rule}; highlighted).`));
  }
  box.append(valuesTable(dataset, choice));
  if (!ranking) {
    box.append(element("p", { class: "quiet" }, "The rankings of this query are not in this report."));
    return box;
  }
  const sides = element("div", { class: "rankings short" });
  const before = ranksOf(ranking, choice.from);
  [choice.from, choice.to].forEach((trainer, side) => {
    sides.append(element("div", {}, element("h4", {}, trainers[trainer]), rankingTable(dataset, ranking, trainer, side, before)));
  });
  linkDocuments(sides);
  box.append(sides);
  const shown = ranking.orders[choice.from].length;
  if (shown > 20) {
    const button = element("button", { type: "button", class: "plain" }, `Show the first ${shown}`);
    button.addEventListener("click", () => {
      sides.classList.remove("short");
      button.remove();
    });
    box.append(button);
  }
  if ([choice.from, choice.to].some((trainer) => ranking.ties[trainer].length)) {
    const text = "= marks documents of equal score: shown as they come in the data, while measures average over all their orders.";
    box.append(element("p", { class: "quiet" }, text));
  }
  return box;
}

function valuesTable(dataset, choice) {
  const head = element("tr", {}, element("th", { scope: "col" }, "Trained on"));
  head.append(...measures.map((name) => element("th", { scope: "col", class: "number" }, name)));
  const body = element("tbody");
  for (const trainer of [choice.from, choice.to]) {
    const row = element("tr", {}, element("th", { scope: "row" }, trainers[trainer]));
    for (const values of dataset.values) {
      const value = values[trainer][choice.query];
      row.append(element("td", { class: "number" }, value === null ? "–" : value.toFixed(3)));
    }
    body.append(row);
  }
  const scroll = { class: "scroll", role: "region", tabindex: "0", "aria-label": "Measures of the chosen query" };
  return element("div", scroll, element("table", {}, element("thead", {}, head), body));
}

/** Give the rank of each document by a trainer; documents with the same score have that of the first of them. */
function ranksOf(ranking, trainer) {
  const ties = new Set(ranking.ties[trainer]);
  const ranks = new Map();
  let first = 0;
  ranking.orders[trainer].forEach((place, rank) => {
    if (!ties.has(rank)) first = rank;
    ranks.set(place, first);
  });
  return ranks;
}

function rankingTable(dataset, ranking, trainer, side, before) {
  const order = ranking.orders[trainer];
  const ties = new Set(ranking.ties[trainer]);
  const ranks = ranksOf(ranking, trainer);
  const { unit, text: scoreText } = scoreFormat(ranking.scores[trainer]);
  const titles = [["rank", "Rank"], ["doc", "Document"], ["label", "Label"], ["score", `Score${unit}`]];
  if (side === 1) titles.push(["move", "Moved"]);
  const head = element("tr", { role: "row" });
  head.append(...titles.map(([name, text]) => element("th", { scope: "col", class: name, role: "columnheader" }, text)));
  const body = element("tbody", { role: "rowgroup" });
  order.forEach((place, rank) => {
    const tied = ties.has(rank) || ties.has(rank + 1);
    const label = ranking.labels[place];
    const score = ranking.scores[trainer][rank];
    const isRelevant = relevantFrom === null ? label > 0 : label >= relevantFrom;
    const doc = dataset.named ? ranking.docs[place] : `row ${ranking.docs[place]}`;
    const cell = (name, text) => element("td", { class: name, role: "cell" }, text);
    const row = element("tr", { class: isRelevant ? "relevant" : null, role: "row", "data-doc": place });
    row.append(
      cell("rank", `${ranks.get(place) + 1}${tied ? "=" : ""}`),
      cell("doc", doc),
      cell("label", label === null ? "–" : String(label)),
      cell("score", typeof score === "number" ? scoreText(score) : score),
    );
    if (side === 1) row.append(cell("move", moveText(before.get(place), ranks.get(place))));
    body.append(row);
  });
  const label = `Ranking by ${trainers[trainer]}`;
  return element("table", { class: "ranking", role: "table", "aria-label": label }, element("thead", { role: "rowgroup" }, head), body);
}

/** Write all scores of a ranking with as many decimals, four digits of the largest; tiny and huge ones by a power of ten. */
function scoreFormat(scores) {
  const largest = Math.max(...scores.filter((score) => typeof score === "number").map(Math.abs), 0);
  const power = largest > 0 ? Math.floor(Math.log10(largest)) : 0;
  const shift = power < -3 || power > 4 ? power : 0;
  const digits = Math.max(0, 3 - power + shift);
  const superscript = [...String(shift)].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? "⁻").join("");
  const text = (score) => (score / 10 ** shift).toFixed(digits).replace(/^-(?=.*[1-9])/, "−").replace(/^-/, "");
  return { unit: shift ? ` ×10${superscript}` : "", text };
}

function moveText(before, rank) {
  if (before === undefined) return "new";
  if (before === rank) return "";
  return before > rank ? `▲${before - rank}` : `▼${rank - before}`;
}

/** Mark the document under the pointer in both rankings. */
function linkDocuments(sides) {
  const mark = (event) => {
    const row = event.type === "mouseleave" ? null : event.target.closest("tr[data-doc]");
    for (const other of sides.querySelectorAll("tr[data-doc]")) {
      other.classList.toggle("same", row !== null && other.dataset.doc === row.dataset.doc);
    }
  };
  sides.addEventListener("mouseover", mark);
  sides.addEventListener("mouseleave", mark);
}

// ---- Start

document.querySelectorAll("table.sortable").forEach(makeSortable);
for (const table of document.querySelectorAll(".scroll > table")) {
  table.style.setProperty("--columns", table.rows[table.tHead.rows.length - 1].cells.length);
}
showPanels(
  document.getElementById("means"),
  columns.map((column) => ({ title: `${column.dataset}: ${column.measure}`, draw: (width) => meansPanel(column, width) })),
);
const haveC = cells.some((cell) => cell.C !== null);
showPanels(
  document.getElementById("training"),
  datasets.flatMap((dataset) => [
    ...(haveC ? [{ title: `${dataset.name}: chosen C`, draw: (width) => chosenPanel(dataset, width) }] : []),
    { title: `${dataset.name}: seconds`, draw: (width) => secondsPanel(dataset, width) },
  ]),
);
makeExplorer(document.getElementById("explorer"));
