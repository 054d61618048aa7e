// The map: weights as cells, labels along both sides.
const LABELLED = 160;
const FAMILY = 'system-ui, "Segoe UI", Roboto, "Noto Sans", "Hiragino Sans", "Noto Sans CJK JP", "Noto Sans JP", "Yu Gothic", Meiryo, sans-serif';
const labelled = LENGTH <= LABELLED;
const canvas = at("map");
const pen = canvas.getContext("2d");
let layout;

function arrange() {
  const size = LENGTH <= 24 ? 15 : LENGTH <= 50 ? 12 : 10;
  const font = `${size}px ${FAMILY}`;
  pen.font = font;
  const widest = labelled ? Math.ceil(Math.max(...DATA.labels.map((label) => pen.measureText(long(label)).width))) : 0;
  const upright = DATA.labels.every((label) => [...label].length === 1);
  const left = widest + 8, top = labelled ? (upright ? size + 10 : widest + 8) : 4;
  const room = at("frame").clientWidth - left - 2;
  const cell = Math.min(Math.max(Math.floor(room / LENGTH), labelled ? Math.min(size + 1, 14) : 2), 44);
  layout = { left, top, cell, font, upright, width: left + cell * LENGTH + 1, height: top + cell * LENGTH + 1 };
}

function drawMap() {
  const { left, top, cell, width, height } = layout;
  const dots = window.devicePixelRatio || 1;
  canvas.width = width * dots;
  canvas.height = height * dots;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.clearRect(0, 0, width, height);
  const gap = cell >= 8 ? 1 : 0;
  const papers = [...Array(256).keys()].map((code) => colour(code / 255).paper);
  const codes = codesOf(state.layer, state.head);
  for (let query = 0; query < LENGTH; query++) {
    for (let key = 0; key <= query; key++) {
      pen.fillStyle = papers[codes[(query * (query + 1)) / 2 + key]];
      pen.fillRect(left + key * cell, top + query * cell, cell - gap, cell - gap);
    }
  }
  const style = getComputedStyle(document.body);
  outline(style.getPropertyValue("--line"), 0.5);
  pen.strokeStyle = style.getPropertyValue("--accent");
  pen.lineWidth = 2;
  pen.strokeRect(left - 1, top + state.query * cell - 1, (state.query + 1) * cell + 1, cell + 1);
  if (labelled) drawLabels(style.getPropertyValue("--ink"));
}

function outline(ink, wide) {
  const { left, top, cell } = layout;
  pen.strokeStyle = ink;
  pen.lineWidth = 2 * wide;
  pen.beginPath();
  pen.moveTo(left - wide, top - wide);
  for (let i = 0; i < LENGTH; i++) {
    pen.lineTo(left + (i + 1) * cell, top + i * cell - wide);
    pen.lineTo(left + (i + 1) * cell, top + (i + 1) * cell);
  }
  pen.lineTo(left - wide, top + LENGTH * cell);
  pen.closePath();
  pen.stroke();
}

function drawLabels(ink) {
  const { left, top, cell, font, upright } = layout;
  pen.fillStyle = ink;
  pen.font = font;
  pen.textBaseline = "middle";
  DATA.labels.forEach((label, i) => {
    const middle = (i + 0.5) * cell;
    pen.textAlign = "right";
    pen.fillText(long(label), left - 6, top + middle);
    pen.save();
    pen.translate(left + middle, top - 6);
    if (!upright) pen.rotate(-Math.PI / 2);
    pen.textAlign = upright ? "center" : "left";
    pen.fillText(long(label), 0, upright ? -5 : 0);
    pen.restore();
  });
}

function under(event) {
  const box = canvas.getBoundingClientRect();
  const key = Math.floor((event.clientX - box.left - layout.left) / layout.cell);
  const query = Math.floor((event.clientY - box.top - layout.top) / layout.cell);
  const inside = query >= 0 && query < LENGTH && key < LENGTH;
  return inside ? { query, key } : null;
}

function sentence(query, key) {
  return `${DATA.labels[query]} → ${DATA.labels[key]}: ${percent(weight(query, key))}`;
}

function strongest(query) {
  let best = 0;
  for (let key = 1; key <= query; key++) if (weight(query, key) > weight(query, best)) best = key;
  return best;
}

function showHover(cell) {
  const there = cell && cell.key >= 0 && cell.key <= cell.query;
  at("hover").textContent = there
    ? sentence(cell.query, cell.key)
    : `most of the chosen row: ${sentence(state.query, strongest(state.query))}`;
}

canvas.onmousemove = (event) => showHover(under(event));
canvas.onmouseleave = () => showHover(null);
canvas.onclick = (event) => {
  const cell = under(event);
  if (cell) look(cell.query);
};
canvas.onkeydown = (event) => {
  const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  look(clamp(state.query + step, LENGTH));
};
