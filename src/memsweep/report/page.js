// Shows what a reader compares: picks the view, filters trials, draws the pictures in the page's own colours.
"use strict";

const byId = (id) => document.getElementById(id);
const read = (id) => (byId(id) ? JSON.parse(byId(id).textContent) : null);
const study = read("study");
const filters = byId("filters");
const LARGE = 13;
const SMALL = 10;
const ROWS_A_PAGE = 50;

// ---- which trials are compared

const trials = new Map(
  study.trials.map(([number, changes, outcome, options, values]) => [number, { number, changes, outcome, options, values }]),
);
let accepted = new Set(study.views[study.first].accepted);

// The number of the view that accepts just that; of too many kinds of change only none and all have one.
function view() {
  const is = (one) => one.accepted.length === accepted.size && one.accepted.every((word) => accepted.has(word));
  const found = study.views.findIndex(is);
  return found === -1 ? study.views.length - 1 : found;
}

function picked(name) {
  const value = filters?.elements[name]?.value;
  return value ? Number(value) : null;
}

// The trials that change no more than is accepted and pass the filters.
function shownTrials() {
  const outcome = picked("outcome");
  const wanted = Array.from({ length: study.n_keys }, (_, index) => picked(`key-${index}`));
  const passes = (trial) =>
    trial.changes.every((word) => accepted.has(word)) &&
    (outcome === null || trial.outcome === outcome) &&
    wanted.every((option, index) => option === null || trial.options[index] === option);
  return new Set([...trials.values()].filter(passes).map((trial) => trial.number));
}

// ---- figures: plain data with colours as var(--name), which plotly needs resolved

function inColor(value, style) {
  if (typeof value === "string") {
    const name = /^var\((--[a-z0-9-]+)\)$/.exec(value);
    return name ? style.getPropertyValue(name[1]).trim() : value;
  }
  if (Array.isArray(value)) return value.map((item) => inColor(item, style));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inColor(item, style)]));
}

function plot(id, data, layout) {
  const figure = inColor({ data, layout }, getComputedStyle(document.documentElement));
  const options = { responsive: true, displaylogo: false, displayModeBar: false };
  const element = byId(id);
  const isNew = !element.classList.contains("js-plotly-plot");
  Plotly.react(element, figure.data, figure.layout, options).then(() => {
    if (isNew) element.on("plotly_click", (event) => pick(event.points[0].customdata));
  });
}

const figures = { scatter: read("scatter-figure"), parallel: read("parallel-figure"), growth: read("growth-plot-figure") };

function keep(trace, indices, front) {
  const take = (list) => indices.map((index) => list[index]);
  const kept = { ...trace };
  for (const key of ["x", "y", "customdata"]) kept[key] = take(trace[key]);
  kept.text = take(trace.text).map((text, place) => {
    const tied = study.views[view()].tied[kept.customdata[place]];
    return tied ? `${text}<br><b>tied with ${tied.join(", ")}</b>` : text;
  });
  for (const key of ["error_x", "error_y"]) {
    if (trace[key]) kept[key] = { ...trace[key], array: take(trace[key].array), arrayminus: take(trace[key].arrayminus) };
  }
  if (Array.isArray(trace.marker.size)) {
    const isLarge = kept.customdata.map((number) => front.has(number));
    kept.marker = {
      ...trace.marker,
      size: isLarge.map((large) => (large ? LARGE : SMALL)),
      opacity: isLarge.map((large) => (large ? 1 : 0.5)),
    };
  }
  return kept;
}

function drawScatter(shown, front) {
  const { data, layout } = figures.scatter;
  const drawn = data.flatMap((trace, index) => {
    if (trace.mode === "lines") return trace.meta.view === view() ? [trace] : [];
    const indices = trace.customdata.flatMap((number, place) => (shown.has(number) ? [place] : []));
    const label = document.querySelector(`.legend [data-trace="${index}"]`);
    if (label) label.hidden = !indices.length;
    return indices.length ? [keep(trace, indices, front)] : [];
  });
  plot("scatter", drawn, layout);
}

// Many lines as few traces: a gap stands between two.
function drawParallel(shown, front) {
  const { lines, layout } = figures.parallel;
  const texts = new Map();
  for (const trace of figures.scatter.data) {
    if (trace.mode !== "lines") trace.customdata.forEach((number, place) => texts.set(number, trace.text[place]));
  }
  const trace = (members, style) => {
    const drawn = { type: "scatter", mode: "lines", x: [], y: [], customdata: [], text: [], line: style.line, opacity: style.opacity };
    for (const [number, ...places] of members) {
      places.forEach((place, row) => {
        if (place === null) return;
        drawn.x.push(place);
        drawn.y.push(row);
        drawn.customdata.push(number);
        drawn.text.push(texts.get(number));
      });
      for (const key of ["x", "y", "customdata", "text"]) drawn[key].push(null);
    }
    return { ...drawn, hovertemplate: "%{text}<extra></extra>" };
  };
  const compared = lines.filter(([number]) => shown.has(number));
  const [strong, weak] = [compared.filter(([number]) => front.has(number)), compared.filter(([number]) => !front.has(number))];
  const chosen = lines.filter(([number]) => number === current);
  plot(
    "parallel",
    [
      trace(weak, { line: { color: "var(--faint)", width: 1 }, opacity: weak.length > 60 ? 0.3 : 0.55 }),
      trace(strong, { line: { color: "var(--accent)", width: 2.2 }, opacity: 0.95 }),
      trace(chosen, { line: { color: "var(--bad)", width: 3 }, opacity: 1 }),
    ],
    layout,
  );
}

// ---- the table of every trial: a page at a time, in any order

const table = byId("trials");
const rows = table ? [...table.querySelectorAll("tbody tr")] : [];
let firstRow = 0;
let matching = rows;

function showRows() {
  firstRow = Math.min(firstRow, Math.max(0, Math.floor((matching.length - 1) / ROWS_A_PAGE) * ROWS_A_PAGE));
  const page = new Set(matching.slice(firstRow, firstRow + ROWS_A_PAGE));
  for (const row of rows) row.hidden = !page.has(row);
  const pages = table.querySelector(".pages");
  pages.hidden = matching.length <= ROWS_A_PAGE;
  pages.querySelector("span").textContent = `${firstRow + 1} to ${firstRow + page.size} of ${inDigits(matching.length)}`;
  pages.querySelector("[data-step='-1']").disabled = firstRow === 0;
  pages.querySelector("[data-step='1']").disabled = firstRow + ROWS_A_PAGE >= matching.length;
}

function sortRows(button) {
  const index = button.dataset.sort === "" ? null : Number(button.dataset.sort);
  const isAgain = button.dataset.order === "up";
  table.querySelectorAll("[data-order]").forEach((other) => delete other.dataset.order);
  button.dataset.order = isAgain ? "down" : "up";
  const key = (row) => {
    const trial = trials.get(Number(row.dataset.trial));
    return index === null ? trial.number : trial.values[index];
  };
  rows.sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === null || b === null) return (a === null) - (b === null); // without a figure: last either way
    return isAgain ? b - a : a - b;
  });
  rows[0].parentElement.append(...rows);
  matching = rows.filter((row) => matching.includes(row));
  firstRow = 0;
  showRows();
}

// ---- everything together

let current = null;

function compare() {
  const shown = shownTrials();
  const number = view();
  const front = new Set(study.views[number].front);
  document.querySelectorAll("[data-views], [data-trial]").forEach((element) => {
    const { views, trial } = element.dataset;
    element.hidden =
      (views !== undefined && !views.split(" ").includes(String(number))) || (trial !== undefined && !shown.has(Number(trial)));
  });
  document.querySelectorAll("tbody[data-views]").forEach((body) => {
    body.hidden ||= ![...body.querySelectorAll("tr[data-trial]")].some((row) => !row.hidden);
  });
  document.querySelectorAll(".strip dl > div").forEach((line) => {
    line.hidden = ![...line.querySelectorAll("[data-trial]")].some((mark) => !mark.hidden);
  });
  document.querySelectorAll(".strip").forEach((strip) => {
    strip.hidden = ![...strip.querySelectorAll("dl > div")].some((line) => !line.hidden);
  });
  if (table) {
    matching = rows.filter((row) => shown.has(Number(row.dataset.trial)));
    for (const row of rows) row.classList.toggle("on-front", front.has(Number(row.dataset.trial)));
    showRows();
  }
  say(shown.size);
  if (figures.scatter) drawScatter(shown, front);
  if (figures.parallel) drawParallel(shown, front);
}

const inDigits = (count) => count.toLocaleString("en");

function say(nShown) {
  if (!filters) return;
  const words = [...accepted].sort().map((index) => study.words[index]);
  const list = words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0];
  const all = trials.size;
  let what = "Showing";
  if (study.words.length && !words.length) what = "Comparing only set-ups that train exactly what the baseline trains:";
  else if (words.length === study.words.length && words.length) what = "Comparing all set-ups, whatever they change:";
  else if (words.length) what = `Comparing set-ups that change nothing but ${list}:`;
  byId("compared").textContent = `${what} ${inDigits(nShown)} of ${inDigits(all)} trials.`;
  const button = byId("compare-all");
  if (button) button.textContent = accepted.size === study.words.length ? "Only what trains the same" : `Compare all ${inDigits(all)}`;
  for (const box of filters.querySelectorAll("[name=accept]")) box.checked = accepted.has(Number(box.value));
}

function pick(number) {
  const row = byId(`trial-${number}`);
  if (!row) return;
  current = number;
  document.querySelectorAll("tr.picked").forEach((other) => other.classList.remove("picked"));
  row.classList.add("picked");
  const line = (...parts) => {
    const paragraph = document.createElement("p");
    paragraph.append(...parts);
    return paragraph;
  };
  const link = document.createElement("a");
  link.href = `#trial-${number}`;
  link.textContent = `Trial ${number}`;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "close";
  close.textContent = "close";
  close.addEventListener("click", () => unpick());
  const figuresOf = [...row.querySelectorAll("td.number.value")].map((cell) => {
    const ratio = cell.querySelector(".ratio")?.textContent;
    return `${cell.firstChild.textContent.trim()}${ratio ? ` (${ratio})` : ""}`;
  });
  const outcome = row.querySelector("[data-label=outcome]").textContent;
  const choice = line(...[...row.querySelector("td.set-up").childNodes].map((node) => node.cloneNode(true)));
  const tied = study.views[view()].tied[number];
  const said = [row.querySelector("td.reason").textContent, tied ? `tied with ${tied.join(", ")}` : ""].filter(Boolean);
  const panel = byId("picked");
  panel.hidden = false;
  panel.replaceChildren(
    close,
    line(link, `: ${[outcome, ...figuresOf].join(", ")}`),
    choice,
    ...(said.length ? [line(said.join("; "))] : []),
    row.querySelector(".command").cloneNode(true),
  );
  panel.lastElementChild.previousElementSibling.classList.toggle("faint", said.length > 0);
  if (figures.parallel) drawParallel(shownTrials(), new Set(study.views[view()].front));
}

function unpick() {
  current = null;
  byId("picked").hidden = true;
  document.querySelectorAll("tr.picked").forEach((row) => row.classList.remove("picked"));
  if (figures.parallel) drawParallel(shownTrials(), new Set(study.views[view()].front));
}

// A link to a trial: leave the filters behind if they hide it, and turn to its page.
function goTo(hash) {
  const number = Number(/^#trial-(\d+)$/.exec(hash)?.[1] ?? NaN);
  const trial = trials.get(number);
  if (!trial) return;
  if (!shownTrials().has(number)) {
    for (const select of filters.querySelectorAll("select")) select.value = "";
    accepted = new Set([...accepted, ...trial.changes]);
    compare();
  }
  firstRow = Math.floor(matching.findIndex((row) => row.id === `trial-${number}`) / ROWS_A_PAGE) * ROWS_A_PAGE;
  showRows();
  byId(`trial-${number}`).scrollIntoView({ block: "center" });
}

filters?.addEventListener("change", (event) => {
  if (event.target.name === "accept") {
    accepted = new Set([...filters.querySelectorAll("[name=accept]:checked")].map((box) => Number(box.value)));
  }
  compare();
});
filters?.addEventListener("reset", () =>
  setTimeout(() => {
    accepted = new Set(study.views[study.first].accepted);
    compare();
  }),
);
filters?.addEventListener("submit", (event) => event.preventDefault());
byId("compare-all")?.addEventListener("click", () => {
  const isAll = accepted.size === study.words.length;
  accepted = new Set(isAll ? [] : study.words.keys());
  compare();
});
addEventListener("hashchange", () => goTo(location.hash));
// Colours are read from the page, so they are drawn anew when the scheme changes, and for paper.
function draw() {
  compare();
  if (figures.growth) plot("growth-plot", figures.growth.data, figures.growth.layout);
}

for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", draw);
draw();
if (location.hash) goTo(location.hash);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.pick) pick(Number(button.dataset.pick));
  else if (button.dataset.sort !== undefined) sortRows(button);
  else if (button.dataset.step) {
    firstRow += Number(button.dataset.step) * ROWS_A_PAGE;
    showRows();
  } else if (button.classList.contains("copy")) {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    } catch {
      getSelection().selectAllChildren(code); // no clipboard from a file in this browser: select it instead
    }
  }
});
