// Draws a code: large squares are 1, small squares 0, and a frame marks a bit that differs from the query.

import { drawing } from "./elements.js";

// Bit i lies in byte i / 8, counted from the least significant bit.
export function toBits(code, bits) {
  const bytes = code.match(/../g).map((byte) => parseInt(byte, 16));
  return Array.from({ length: bits }, (_, i) => (bytes[i >> 3] >> (i & 7)) & 1);
}

export function distanceOf(a, b) {
  return a.reduce((sum, bit, i) => sum + (bit === b[i] ? 0 : 1), 0);
}

export function drawCode(bits, { other = null, across = 32, label }) {
  const step = 10;
  const place = (i) => [(i % across) * step, Math.floor(i / across) * step];
  const square = (i, size) => {
    const [x, y] = place(i);
    const edge = (step - size) / 2;
    return `M${x + edge} ${y + edge}h${size}v${size}h-${size}z`;
  };
  const paths = { one: "", zero: "", differs: "" };
  bits.forEach((bit, i) => {
    paths[bit ? "one" : "zero"] += square(i, bit ? 7 : 3);
    if (other && other[i] !== bit) paths.differs += square(i, 9.2);
  });
  const columns = Math.min(across, bits.length);
  const rows = Math.ceil(bits.length / across);
  return drawing(
    `0 0 ${columns * step} ${rows * step}`,
    Object.entries(paths).map(([name, d]) => ["path", { class: name, d }]),
    { class: "bits", role: "img", "aria-label": label },
  );
}
