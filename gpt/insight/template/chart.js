// Curves: a canvas for each chart, all over the same axis; the pointer, or the arrow keys, read what is there.
// What is written beside an axis, how much that is, and how a place on it is told; the largest that fits is taken.
const UNITS = {
  step: [["steps", 1, (x) => `step ${x}`]],
  tokens: [
    ["tokens", 1, (x) => `${x} tokens`],
    ["tokens, millions", 1e6, (x) => `${x} million tokens`],
    ["tokens, billions", 1e9, (x) => `${x} billion tokens`],
  ],
  elapsed: [
    ["time, seconds", 1, (x) => `${x} seconds`],
    ["time, minutes", 60, (x) => `${x} minutes`],
    ["time, hours", 3600, (x) => `${x} hours`],
  ],
};
const COLOURS = 8;
const DASHES = [[], [7, 3], [2, 3]];
const FONT = '12px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const view = { axis: "step", log: false };

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const colour = (i) => css(`--curve-${i % COLOURS}`);
const dashes = (i) => DASHES[Math.floor(i / COLOURS) % DASHES.length];

function number(x) {
  if (x === 0) return "0";
  if (Math.abs(x) >= 999.95) return Math.round(x).toLocaleString("en");
  return Math.abs(x) < 1e-4 ? x.toExponential(2) : String(+x.toPrecision(4));
}

function place(x) {
  const [, per, told] = unit(x);
  return told(number(view.axis === "step" ? Math.round(x) : x / per));
}

function unit(most) {
  return UNITS[view.axis].findLast(([, per]) => most >= 2 * per) ?? UNITS[view.axis][0];
}

// Round numbers from low to high: about so many; of a logarithmic axis 1, 2, 5, 10 and so on, or powers of ten alone.
function ticks(low, high, many, log = false) {
  if (log && high / low > 3) {
    const steps = high / low > 10 ** (many / 3) ? [1] : [1, 2, 5];
    const powers = [...Array(40).keys()].map((i) => 10 ** (i - 12));
    return powers.flatMap((power) => steps.map((step) => step * power)).filter((x) => x >= low * 0.999 && x <= high * 1.001);
  }
  const rough = (high - low) / many, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((s) => s * power >= rough * 0.999) * power;
  const first = Math.ceil(low / step - 1e-9);
  return [...Array(Math.max(0, Math.floor(high / step + 1e-9) - first + 1)).keys()].map((i) => (first + i) * step);
}

// The place of the number that is nearest, in numbers that rise.
function nearest(numbers, x) {
  let low = 0, high = numbers.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < x) low = middle + 1; else high = middle;
  }
  return low > 0 && x - numbers[low - 1] < numbers[low] - x ? low - 1 : low;
}

class Chart {
  constructor({ title, unit, zero, series }) {
    Object.assign(this, { title, unit, zero, series, hidden: new Set(), here: null });
    this.canvas = made("canvas", { tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.pen = this.canvas.getContext("2d");
    this.told = made("p", { className: "told small soft" });
    this.told.setAttribute("aria-live", "polite");
    this.legend = made("div", { className: "legend small" });
    this.keys = series.map((one, i) => this.key(one, i));
    if (series.length > 1) this.legend.append(...this.keys);
    this.element = made("section", { className: "chart" }, made("h3", { textContent: title }), this.canvas, this.told, this.legend);
    this.canvas.onpointermove = this.canvas.onpointerdown = (event) => this.read(this.under(event.offsetX));
    this.canvas.onpointerleave = this.canvas.onblur = () => this.read(null);
    this.canvas.onkeydown = (event) => this.walk(event);
  }

  key(one, i) {
    const line = made("template", { innerHTML: '<svg width="18" height="8" aria-hidden="true"><path d="M0 4H18" fill="none" stroke-width="2.5"/></svg>' });
    const path = line.content.firstChild.firstChild;
    path.style.stroke = `var(--curve-${i % COLOURS})`;
    path.setAttribute("stroke-dasharray", dashes(i).join(" "));
    const button = made("button", { type: "button" }, line.content, made("span", { textContent: one.name }), made("b"));
    button.setAttribute("aria-pressed", true);
    button.onclick = () => {
      if (!this.hidden.delete(i)) this.hidden.add(i);
      button.setAttribute("aria-pressed", !this.hidden.has(i));
      this.draw();
    };
    return button;
  }

  shown() {
    const seen = this.series.map((one, i) => ({ ...one, i, x: one[view.axis] })).filter(({ i }) => !this.hidden.has(i));
    return view.log ? seen.filter(({ x }) => x[x.length - 1] > 0) : seen;
  }

  // Where numbers stand on the canvas.
  scales(shown) {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const xs = shown.flatMap(({ x }) => [view.log ? x.find((value) => value > 0) : x[0], x[x.length - 1]]);
    const ys = shown.flatMap(({ y }) => [y.reduce((a, b) => Math.min(a, b)), y.reduce((a, b) => Math.max(a, b))]);
    let [left, right] = [Math.min(...xs), Math.max(...xs)], [low, high] = [Math.min(...ys), Math.max(...ys)];
    if (!view.log) left = Math.min(left, 0);
    if (this.zero) low = Math.min(low, 0);
    if (right <= left) right = left + (left || 1);
    const room = (high - low || Math.abs(high) || 1) * 0.05;
    [low, high] = [low >= 0 && low < room ? 0 : low - room, high + room];
    const box = { left: 58, top: 20, right: width - 12, bottom: height - 36 };
    const f = view.log ? Math.log : (x) => x, g = view.log ? Math.exp : (x) => x;
    const across = (box.right - box.left) / (f(right) - f(left)), up = (box.bottom - box.top) / (high - low);
    return {
      box, left, right, low, high,
      x: (value) => box.left + (f(value) - f(left)) * across,
      y: (value) => box.bottom - (value - low) * up,
      back: (pixel) => g(f(left) + (Math.min(Math.max(pixel, box.left), box.right) - box.left) / across),
    };
  }

  draw() {
    const dots = window.devicePixelRatio || 1, shown = this.shown(), { canvas, pen } = this;
    canvas.width = canvas.clientWidth * dots;
    canvas.height = canvas.clientHeight * dots;
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    this.scale = shown.length ? this.scales(shown) : null;
    if (!this.scale) return;
    this.drawAxes();
    for (const one of shown) this.drawLine(one);
    if (this.here !== null) this.drawHere(shown);
    const ends = shown.map(({ name, y }) => `${name} from ${number(y[0])} to ${number(y[y.length - 1])}`);
    canvas.setAttribute("aria-label", `${this.title}, ${this.unit}, over ${unit(this.scale.right)[0]}: ${ends.slice(0, 12).join("; ")}`);
  }

  drawAxes() {
    const { pen, scale: { box, left, right, low, high, x, y } } = this;
    const [name, per] = unit(right);
    pen.font = FONT;
    pen.lineWidth = 1;
    pen.strokeStyle = css("--line");
    pen.fillStyle = css("--soft");
    const line = (...path) => { pen.beginPath(); pen.moveTo(path[0], path[1]); pen.lineTo(path[2], path[3]); pen.stroke(); };
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of ticks(low, high, 5)) {
      line(box.left, y(value), box.right, y(value));
      pen.fillText(number(+value.toPrecision(6)), box.left - 6, y(value));
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of ticks(left / per, right / per, Math.max(2, (box.right - box.left) / 80), view.log)) {
      line(x(value * per), box.bottom, x(value * per), box.bottom + 4);
      const text = number(+value.toPrecision(6)), most = this.canvas.clientWidth - pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(x(value * per), most), box.bottom + 6);
    }
    pen.textAlign = "right";
    pen.fillText(name, box.right, box.bottom + 21);
    pen.textAlign = "left";
    pen.fillText(this.unit, 2, 0);
  }

  drawLine({ x: xs, y: ys, i }) {
    const { pen, scale: { x, y } } = this;
    pen.strokeStyle = pen.fillStyle = colour(i);
    pen.lineWidth = 1.7;
    pen.lineJoin = "round";
    pen.setLineDash(dashes(i));
    pen.beginPath();
    const there = xs.map((value, n) => (view.log && value <= 0 ? null : [x(value), y(ys[n])])).filter(Boolean);
    there.forEach(([across, down], n) => (n ? pen.lineTo(across, down) : pen.moveTo(across, down)));
    pen.stroke();
    pen.setLineDash([]);
    if (there.length <= 30) there.forEach((spot) => this.dot(...spot, 2.5));
  }

  dot(across, down, size) {
    this.pen.beginPath();
    this.pen.arc(across, down, size, 0, 2 * Math.PI);
    this.pen.fill();
  }

  drawHere(shown) {
    const { pen, scale: { box, x, y } } = this;
    pen.strokeStyle = css("--soft");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x(this.here), box.top);
    pen.lineTo(x(this.here), box.bottom);
    pen.stroke();
    for (const one of shown) {
      const n = nearest(one.x, this.here);
      pen.fillStyle = colour(one.i);
      if (!view.log || one.x[n] > 0) this.dot(x(one.x[n]), y(one.y[n]), 4);
    }
  }

  under(pixel) {
    return this.scale ? this.scale.back(pixel) : null;
  }

  // Tell the values at a place: of the only curve in a sentence, of several in the legend.
  read(here) {
    this.here = here;
    this.keys.forEach((button) => { button.lastChild.textContent = ""; });
    this.told.textContent = "";
    if (here !== null) {
      for (const one of this.shown()) this.keys[one.i].lastChild.textContent = number(one.y[nearest(one.x, here)]);
      const [one] = this.shown(), near = nearest(one.x, here);
      const alone = this.series.length === 1;
      this.told.textContent = alone ? `${place(one.x[near])}: ${number(one.y[near])} ${this.unit}` : `near ${place(here)}`;
    }
    this.draw();
  }

  walk(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], [one] = this.shown();
    if (!step || !one) return;
    event.preventDefault();
    const n = this.here === null ? (step > 0 ? 0 : one.x.length - 1) : nearest(one.x, this.here) + step;
    this.read(one.x[Math.min(Math.max(n, 0), one.x.length - 1)]);
  }
}

function startCharts() {
  const charts = DATA.charts.map((one) => new Chart(one));
  at("charts").append(...charts.map(({ element }) => element));
  const draw = () => charts.forEach((one) => one.read(null));
  document.querySelectorAll("[name=axis]").forEach((input) => {
    input.onchange = () => { view.axis = input.value; draw(); };
  });
  at("log").onchange = () => { view.log = at("log").checked; draw(); };
  window.addEventListener("resize", draw);
  dark.addEventListener("change", draw);
  draw();
}
