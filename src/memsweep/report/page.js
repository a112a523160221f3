// Draws the picture in the page's own colours, shows the trial that was picked, copies commands.
"use strict";

const plot = document.getElementById("scatter");
const blank = plot && JSON.parse(document.getElementById("figure").textContent);

// A figure names colours as var(--name); plotly needs them resolved, anew when the scheme changes.
function inColor(value, style) {
  if (typeof value === "string") {
    const name = /^var\((--[a-z0-9-]+)\)$/.exec(value);
    return name ? style.getPropertyValue(name[1]).trim() : value;
  }
  if (Array.isArray(value)) return value.map((item) => inColor(item, style));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inColor(item, style)]));
}

function draw() {
  const figure = inColor(blank, getComputedStyle(document.documentElement));
  return Plotly.react(plot, figure.data, figure.layout, { responsive: true, displaylogo: false, displayModeBar: false });
}

function pick(number) {
  const row = document.getElementById(`trial-${number}`);
  const picked = document.getElementById("picked");
  if (!row || !picked) return;
  document.querySelectorAll("tr.picked").forEach((other) => other.classList.remove("picked"));
  row.classList.add("picked");
  const title = document.createElement("p");
  const link = document.createElement("a");
  link.href = `#trial-${number}`;
  link.textContent = `Trial ${number}`;
  title.append(link, `: ${[...row.querySelectorAll("td.number.value")].map((cell) => cell.textContent.trim()).join(", ")}`);
  const choice = document.createElement("p");
  choice.append(...[...row.querySelector("td.set-up").childNodes].map((node) => node.cloneNode(true)));
  const command = row.querySelector(".command");
  picked.hidden = false;
  picked.replaceChildren(title, choice, ...(command ? [command.cloneNode(true)] : []));
}

if (plot) {
  draw().then(() => plot.on("plotly_click", (event) => pick(event.points[0].customdata)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.querySelectorAll(".legend input").forEach((box) =>
    box.addEventListener("change", () => {
      blank.data[box.dataset.trace].visible = box.checked;
      draw();
    }),
  );
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  } catch {
    getSelection().selectAllChildren(code); // no clipboard from a file in this browser: select it instead
  }
});
