"use strict";
// Where words stand and arcs run: the rules of the SVG that `subdp show` draws, with widths measured by the browser.

const PORT_GAP = 9, WORD_GAP = 12, STEP = 23, CORNER = 8, MARGIN = 6;

// `widths` are those of the words. An arc is {dependent, head, width}: words from 0, head -1 is ROOT, and the width of its label.
// Gives the centres of the words and, for each arc, its ends (`from` its head, `to` its dependent), level and label's place.
function layOut(widths, arcs) {
  const span = (arc) => (arc.head < 0 ? Infinity : Math.abs(arc.head - arc.dependent)); // ROOT's last: above all others
  const ordered = [...arcs].sort((a, b) => span(a) - span(b));
  const closing = widths.map(() => []), opening = widths.map(() => []), rooted = widths.map(() => []);
  for (const arc of ordered) {
    // Of the arcs to either side the short ones are outermost, so that no two arcs of one word cross.
    if (arc.head < 0) rooted[arc.dependent].push(arc);
    else {
      closing[Math.max(arc.head, arc.dependent)].push(arc);
      opening[Math.min(arc.head, arc.dependent)].unshift(arc);
    }
  }
  const centres = [];
  let edge = MARGIN;
  widths.forEach((width, word) => {
    const ports = [...closing[word], ...rooted[word], ...opening[word]];
    const reach = PORT_GAP * Math.max(ports.length - 1, 0), half = Math.max(width, reach) / 2;
    // A word moves on until each arc that closes here has room for its label.
    const needed = closing[word].map((arc, place) => arc.left + arc.width + 2 * CORNER + 4 + reach / 2 - place * PORT_GAP);
    centres[word] = Math.max(edge + half, ...needed);
    ports.forEach((arc, place) => {
      const x = centres[word] - reach / 2 + place * PORT_GAP;
      if (arc.head < 0) Object.assign(arc, { left: x - arc.width / 2 - 3, right: x + arc.width / 2 + 3, from: x, to: x });
      else {
        arc[place < closing[word].length ? "right" : "left"] = x;
        arc[arc.head === word ? "from" : "to"] = x;
      }
    });
    edge = centres[word] + half + WORD_GAP;
  });
  ordered.forEach((arc, at) => {
    const below = ordered.slice(0, at).filter((other) => other.left < arc.right && arc.left < other.right);
    arc.level = 1 + Math.max(0, ...below.map((other) => other.level));
  });
  for (const arc of arcs) {
    const legs = arcs.filter((other) => other.level > arc.level).flatMap((other) => [other.from, other.to]);
    arc.labelAt = arc.head < 0 ? arc.to : freePlace(arc.left, arc.right, legs, arc.width / 2 + 3);
  }
  return { centres, width: edge - WORD_GAP + MARGIN, levels: Math.max(0, ...arcs.map((arc) => arc.level)) };
}

// The place nearest to the middle where a label meets none of the lines that cross its arc.
function freePlace(left, right, legs, margin) {
  const middle = (left + right) / 2;
  const edges = [left, ...legs.filter((leg) => left < leg && leg < right).sort((a, b) => a - b), right];
  let best = middle, distance = Infinity;
  for (let at = 1; at < edges.length; at++) {
    const low = edges[at - 1] + margin, high = edges[at] - margin;
    const place = Math.min(Math.max(middle, low), high);
    if (low <= high && Math.abs(place - middle) < distance) [best, distance] = [place, Math.abs(place - middle)];
  }
  return best;
}

// The line of an arc, from its head over its level to just above its dependent.
function arcPath(arc, ground, across) {
  const from = across(arc.from), to = across(arc.to), top = ground - STEP * arc.level, corner = from < to ? CORNER : -CORNER;
  if (arc.head < 0) return `M${to} ${top}V${ground - 5}`;
  return `M${from} ${ground}V${top + CORNER}Q${from} ${top} ${from + corner} ${top}H${to - corner}Q${to} ${top} ${to} ${top + CORNER}V${ground - 5}`;
}
