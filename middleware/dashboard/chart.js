// A chart of the last minute on a canvas: areas (stacked or not) and lines over time, the newest at the right edge. It
// knows nothing of the network; it draws the points it is given at the moment it is told.

const GUTTER = 44; // room for the numbers of the scale, in CSS pixels
const FOOT = 18; // room for the times

/** The distance of the lines of a scale up to top: 1, 2 or 5 × 10^k, so that there are some `lines` of them or a few more. */
export function niceStep(top, lines) {
  const power = 10 ** Math.floor(Math.log10(top / lines));
  return [5, 2, 1].map((step) => step * power).find((step) => step <= (top / lines) * 1.0001);
}

export class Chart {
  /**
   * series: {of: point → number (NaN: none), ink: name of a colour, fill: whether it is an area}, drawn in order.
   * stacked: areas lie on each other. least: the scale's top is never below it; fixed: it is always least.
   * marks: horizontal lines {at, text}. lines: how many lines of the scale there are at least.
   */
  constructor(canvas, {series, stacked = false, least = 1, fixed = false, marks = [], lines = 3}) {
    Object.assign(this, {canvas, series, stacked, least, fixed, marks, lines});
    this.top = least;
    this.context = canvas.getContext("2d");
  }

  /** Draws points, of which the one with seq `position` stands at the right edge and `span` fit in the width. */
  draw(points, position, span) {
    const box = this.canvas.getBoundingClientRect();
    if (box.width === 0) return;
    const scale = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(box.width * scale), Math.round(box.height * scale)];
    if (this.canvas.width !== w || this.canvas.height !== h) [this.canvas.width, this.canvas.height] = [w, h];
    const c = this.context;
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, box.width, box.height);
    this.ink = getComputedStyle(this.canvas);

    const shown = points.filter((p) => p.seq >= position - span - 1 && p.seq <= position + 1);
    this.fit(shown);
    const width = box.width - GUTTER;
    const height = box.height - FOOT;
    const x = (seq) => GUTTER + width * (1 - (position - seq) / span);
    const y = (value) => height - (height - 8) * Math.min(value / this.top, 1.02);

    this.grid(box.width, height, y);
    c.save();
    c.beginPath();
    c.rect(GUTTER, 0, width, height);
    c.clip();
    this.lay(shown, x, y);
    c.restore();
    this.markLines(box.width, y);
    this.times(box.width, box.height);
  }

  colour(name) {
    return this.ink.getPropertyValue(`--${name}`).trim();
  }

  /** Moves the top of the scale towards what is shown, so that it does not jump. */
  fit(shown) {
    if (this.fixed) return;
    let highest = this.least;
    for (const p of shown) {
      let sum = 0;
      for (const s of this.series) {
        const value = s.of(p);
        if (!(value > 0)) continue;
        sum = this.stacked && s.fill ? sum + value : Math.max(sum, value);
        highest = Math.max(highest, sum);
      }
    }
    const step = niceStep(highest * 1.04, this.lines);
    const goal = Math.ceil((highest * 1.04) / step) * step;
    this.top = Math.abs(goal - this.top) < goal * 0.01 ? goal : this.top + (goal - this.top) * 0.25;
  }

  grid(width, height, y) {
    const c = this.context;
    c.font = "11px system-ui, sans-serif";
    c.textAlign = "right";
    c.textBaseline = "middle";
    c.lineWidth = 1;
    const step = niceStep(this.top, this.lines);
    for (let value = 0; value <= this.top * 1.001; value += step) {
      const at = Math.round(y(value)) + 0.5;
      c.strokeStyle = this.colour("line");
      c.beginPath();
      c.moveTo(GUTTER, at);
      c.lineTo(width, at);
      c.stroke();
      c.fillStyle = this.colour("soft");
      c.fillText(short(value), GUTTER - 6, Math.max(at, 7));
    }
  }

  lay(shown, x, y) {
    const c = this.context;
    const base = shown.map(() => 0);
    for (const s of this.series) {
      const tops = shown.map((p, i) => s.of(p) + (this.stacked && s.fill ? base[i] : 0));
      c.strokeStyle = c.fillStyle = this.colour(s.ink);
      c.lineWidth = 1.75;
      c.lineJoin = "round";
      for (const [from, to] of runs(tops)) {
        if (s.fill) {
          c.beginPath();
          for (let i = from; i < to; i++) c.lineTo(x(shown[i].seq), y(tops[i]));
          for (let i = to - 1; i >= from; i--) c.lineTo(x(shown[i].seq), y(base[i]));
          c.closePath();
          c.globalAlpha = this.stacked ? 0.85 : 0.3;
          c.fill();
          c.globalAlpha = 1;
        }
        if (!s.fill || !this.stacked) {
          c.beginPath();
          for (let i = from; i < to; i++) c.lineTo(x(shown[i].seq), y(tops[i]));
          c.stroke();
        }
      }
      if (this.stacked && s.fill) tops.forEach((top, i) => { base[i] = top; });
    }
  }

  markLines(width, y) {
    const c = this.context;
    for (const {at, text} of this.marks) {
      if (at > this.top || at < this.top * 0.08) continue;
      const line = Math.round(y(at)) + 0.5;
      c.strokeStyle = c.fillStyle = this.colour("ink");
      c.lineWidth = 1;
      c.setLineDash([5, 4]);
      c.beginPath();
      c.moveTo(GUTTER, line);
      c.lineTo(width, line);
      c.stroke();
      c.setLineDash([]);
      c.textAlign = "left";
      c.textBaseline = line > 18 ? "bottom" : "top";
      const words = line > 18 ? line - 2 : line + 3;
      // A halo in the card's colour keeps the words readable on any area.
      c.strokeStyle = this.colour("card");
      c.lineWidth = 3;
      c.strokeText(text, GUTTER + 6, words);
      c.fillText(text, GUTTER + 6, words);
    }
  }

  times(width, height) {
    const c = this.context;
    c.fillStyle = this.colour("soft");
    c.textBaseline = "bottom";
    for (const [share, text, align] of [[0, "60 s ago", "left"], [0.5, "30 s", "center"], [1, "now", "right"]]) {
      c.textAlign = align;
      c.fillText(text, GUTTER + (width - GUTTER) * share, height);
    }
  }
}

/** The stretches of values that are numbers, as [from, to) pairs. */
function runs(values) {
  const found = [];
  let from = -1;
  values.forEach((value, i) => {
    if (Number.isNaN(value)) {
      if (from >= 0) found.push([from, i]);
      from = -1;
    } else if (from < 0) {
      from = i;
    }
  });
  if (from >= 0) found.push([from, values.length]);
  return found;
}

function short(value) {
  return value >= 10000 ? `${value / 1000}k` : value.toLocaleString("en", {maximumFractionDigits: 1});
}
