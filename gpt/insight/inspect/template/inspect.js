const LENGTH = DATA.labels.length;
const LAYERS = DATA.weights.length;
const HEADS = DATA.weights[0].length;
const MEASURES = {
  entropy: { name: "entropy", text: (x) => `${x.toFixed(2)} bits`, short: (x) => x.toFixed(1) },
  first: { name: "on the first token", text: (x) => percent(x), short: (x) => percent(x) },
  back: { name: "looks back", text: (x) => `${x.toFixed(1)} tokens`, short: (x) => x.toFixed(1) },
};
const state = { layer: 0, head: 0, query: LENGTH - 1, measure: "entropy" };

function percent(x) {
  return x >= 0.0995 || x === 0 ? `${(100 * x).toFixed(0)}%` : x >= 0.00095 ? `${(100 * x).toFixed(1)}%` : "<0.1%";
}

function long(label, most = 14) {
  const characters = [...label];
  return characters.length > most ? characters.slice(0, most - 1).join("") + "…" : label;
}

// Weights: a byte each, 255 sqrt(w), rows of the lower triangle one after the other.
const unpacked = new Map();

function codesOf(layer, head) {
  const key = layer * HEADS + head;
  if (!unpacked.has(key)) {
    unpacked.set(key, Uint8Array.from(atob(DATA.weights[layer][head]), (byte) => byte.charCodeAt(0)));
  }
  return unpacked.get(key);
}

function root(query, key) {
  return codesOf(state.layer, state.head)[(query * (query + 1)) / 2 + key] / 255;
}

const weight = (query, key) => root(query, key) ** 2;

// Colours: from the paper's to a strong one, by the root of what is shown, and letters that are read on it.
const RAMPS = {
  light: [[255, 255, 255], [158, 202, 225], [33, 113, 181], [8, 29, 88]],
  dark: [[24, 28, 34], [60, 52, 110], [196, 78, 82], [255, 224, 130]],
};

function colour(x) {
  const ramp = dark.matches ? RAMPS.dark : RAMPS.light;
  const place = Math.min(Math.max(x, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(place), ramp.length - 2);
  const mixed = ramp[low].map((from, i) => Math.round(from + (place - low) * (ramp[low + 1][i] - from)));
  const light = (0.299 * mixed[0] + 0.587 * mixed[1] + 0.114 * mixed[2]) / 255;
  return { paper: `rgb(${mixed.join()})`, ink: light > 0.55 ? "#14171b" : "#ffffff" };
}

function painted(element, x) {
  const { paper, ink } = colour(x);
  element.style.background = paper;
  element.style.color = ink;
}

// The grid of heads.
const buttons = [];

function buildHeads() {
  const table = at("heads");
  const width = Math.max(10, Math.min(46, Math.floor(290 / HEADS) - 2));
  table.style.setProperty("--width", `${width}px`);
  table.style.setProperty("--height", `${Math.min(30, Math.max(14, width))}px`);
  table.classList.toggle("dense", width < 30);
  const numbers = [...Array(HEADS).keys()];
  const wide = width < 20 ? (i) => (i === 0 || (i + 1) % 4 === 0 ? i + 1 : "") : (i) => i + 1;
  table.append(made("tr", {}, made("th"), ...numbers.map((i) => made("th", { textContent: wide(i), scope: "col" }))));
  for (let layer = 0; layer < LAYERS; layer++) {
    const row = made("tr", {}, made("th", { textContent: layer + 1, scope: "row" }));
    buttons.push(numbers.map((head) => {
      const button = made("button", { type: "button", tabIndex: -1, onclick: () => pick(layer, head) });
      button.setAttribute("role", "gridcell");
      row.append(made("td", {}, button));
      return button;
    }));
    table.append(row);
  }
  table.onkeydown = (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    pick(clamp(state.layer + step[0], LAYERS), clamp(state.head + step[1], HEADS));
    buttons[state.layer][state.head].focus();
  };
}

const clamp = (index, count) => Math.min(Math.max(index, 0), count - 1);

function showHeads() {
  const table = DATA[state.measure];
  const most = Math.max(1e-9, ...table.flat());
  buttons.forEach((row, layer) => row.forEach((button, head) => {
    const x = table[layer][head];
    painted(button, state.measure === "first" ? x : x / most);
    button.textContent = MEASURES[state.measure].short(x);
    button.title = `layer ${layer + 1}, head ${head + 1}: ${MEASURES[state.measure].text(x)}`;
    const chosen = layer === state.layer && head === state.head;
    button.setAttribute("aria-selected", chosen);
    button.setAttribute("aria-label", button.title);
    button.tabIndex = chosen ? 0 : -1;
  }));
  at("numbers").replaceChildren(...Object.entries(MEASURES).flatMap(([key, measure]) => [
    made("dt", { textContent: measure.name }),
    made("dd", { textContent: measure.text(DATA[key][state.layer][state.head]) }),
  ]));
}

// The text as tokens: what the chosen one takes of each, and how surprising each is.
function tokens(place, note) {
  const chips = DATA.labels.map((label, i) => {
    const chip = made("button", { type: "button", onclick: () => look(i) }, label, made("small", { textContent: note(i) }));
    return chip;
  });
  place.replaceChildren(...chips.flatMap((chip, i) => (DATA.labels[i].includes("↵") ? [chip, made("hr")] : [chip])));
  return chips;
}

let taken = [];

function showQuery() {
  const label = DATA.labels[state.query];
  at("query").textContent = `What ${label} (token ${state.query + 1}) looks at, layer ${state.layer + 1}, head ${state.head + 1}`;
  taken.forEach((chip, i) => {
    const seen = i <= state.query;
    painted(chip, seen ? root(state.query, i) : 0);
    chip.lastChild.textContent = seen ? percent(weight(state.query, i)) : "–";
    chip.classList.toggle("unseen", !seen);
    chip.setAttribute("aria-pressed", i === state.query);
  });
}

function buildSurprise() {
  const step = (bits) => DATA.steps.find((s, i) => (bits === null ? i === 0 : i > 0 && (s.below === null || bits < s.below)));
  const text = (bits) => (bits === null ? "–" : bits.toFixed(1));
  tokens(at("surprise"), (i) => text(DATA.bits[i])).forEach((chip, i) => {
    const { colour: paper, ink, text: meaning } = step(DATA.bits[i]);
    Object.assign(chip.style, { background: paper, color: ink });
    chip.title = meaning;
  });
  at("steps").append(...DATA.steps.map(({ colour: paper, ink, text: meaning }) =>
    made("span", { textContent: meaning, style: `background: ${paper}; color: ${ink}` })));
}

function show() {
  const name = `Layer ${state.layer + 1}, head ${state.head + 1}`;
  at("picked").textContent = name;
  canvas.setAttribute("aria-label", `Attention weights of ${name}`);
  showHeads();
  drawMap();
  showQuery();
  showHover(null);
}

function pick(layer, head) {
  Object.assign(state, { layer, head });
  show();
}

function look(query) {
  state.query = query;
  show();
  const frame = at("frame");
  const row = layout.top + query * layout.cell;
  const seen = row >= frame.scrollTop && row + layout.cell <= frame.scrollTop + frame.clientHeight;
  if (!seen) frame.scrollTop = row - frame.clientHeight / 2;
}

function start() {
  buildHeads();
  buildSurprise();
  taken = tokens(at("taken"), () => "");
  at("scale").textContent = "Colours go by the root of the weight; weights are stored in 256 steps, exact to 0.4%.";
  if (!labelled) at("unnamed").textContent = `${LENGTH} tokens are too many to name along the map: hover to read them.`;
  document.querySelectorAll("[name=measure]").forEach((input) => {
    input.onchange = () => { state.measure = input.value; showHeads(); };
  });
  document.querySelector(".attention").classList.toggle("stacked", LENGTH > 60);
  arrange();
  show();
  window.onresize = () => { arrange(); drawMap(); };
  dark.onchange = show;
}
