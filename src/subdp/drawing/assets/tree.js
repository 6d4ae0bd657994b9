"use strict";
// One sentence as elements: its text, its tree, and the panel of the word that is chosen. Text enters as text nodes only.

function make(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "text"].includes(name);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const show = (share) => (share < 0.005 ? "<0.01" : share.toFixed(2));

function stateOf(sentence, word, column) {
  if (sentence.problems.some((problem) => problem.column === column && problem.at.includes(word))) return "wrong";
  return isMine(sentence, word, column) ? "mine" : isWeak(sentence, word, column) ? "weak" : "";
}

function nameOf(sentence, head) {
  return head === "0" ? "ROOT" : head === "_" ? "no head" : sentence.words[head - 1]?.[FORM] ?? "?";
}

function wordButton(sentence, word, chosen) {
  const row = sentence.words[word];
  const unsure = [HEAD, LABEL, TAG].some((column) => isWeak(sentence, word, column));
  const said = `${row[FORM]}, word ${word + 1}, ${row[TAG]}, ${row[LABEL]} of ${nameOf(sentence, row[HEAD])}${unsure ? ", unsure" : ""}`;
  return make("button", {
    class: "word", "data-word": word, "aria-label": said, "aria-current": word === chosen, tabindex: word === (chosen ?? 0) ? 0 : -1,
  },
    make("span", { class: "form", dir: "auto" }, row[FORM]),
    make("span", { class: "below", dir: "ltr" },
      make("span", { class: "number" }, `${word + 1} `), make("span", { class: `tag ${stateOf(sentence, word, TAG)}` }, row[TAG])));
}

const pen = document.createElement("canvas").getContext("2d");

// Draws into `tree`, which must be in the page: the browser measures the words.
function drawTree(tree, sentence, chosen) {
  const words = sentence.words.map((_, word) => wordButton(sentence, word, chosen));
  const picture = make("svg", { "aria-hidden": true });
  const stage = make("div", { class: "stage" }, picture, ...words);
  tree.dir = sentence.rtl ? "rtl" : "ltr";
  tree.replaceChildren(make("div", { class: "rootdrop", "data-word": -1 }, "ROOT"), stage);
  const widths = words.map((word) => word.getBoundingClientRect().width), height = Math.max(...words.map((word) => word.offsetHeight));
  pen.font = `700 11.5px ${getComputedStyle(stage).fontFamily}`; // the chosen arc's label is bold
  const arcs = sentence.words.flatMap((row, dependent) =>
    row[HEAD] === "_" ? [] : [{ dependent, head: row[HEAD] - 1, width: pen.measureText(row[LABEL]).width }]);
  const { centres, width, levels } = layOut(widths, arcs);
  const across = (x) => (sentence.rtl ? width - x : x), ground = 12 + STEP * levels;
  words.forEach((word, at) => Object.assign(word.style, { left: `${across(centres[at]) - widths[at] / 2}px`, top: `${ground + 2}px` }));
  // The highest first, so that where a line must cross a label, the label is on top.
  for (const arc of arcs.sort((a, b) => b.level - a.level)) {
    const look = (column) => `${stateOf(sentence, arc.dependent, column)} ${arc.dependent === chosen ? "chosen" : ""}`;
    const to = across(arc.to), top = ground - STEP * arc.level;
    picture.append(
      make("path", { class: `arc ${look(HEAD)}`, d: arcPath(arc, ground, across) }),
      make("path", { class: `tip ${look(HEAD)}`, d: `M${to - 3.5} ${ground - 7}h7l-3.5 7z` }),
      make("text", { class: `label ${look(LABEL)}`, x: across(arc.labelAt), y: top + 4, "data-word": arc.dependent },
        sentence.words[arc.dependent][LABEL]));
  }
  const ranges = sentence.rows.filter((row) => row[ID].includes("-")).map((row) => {
    const [first, last] = row[ID].split("-").map((id) => id - 1);
    const ends = [across(centres[first] - widths[first] / 2), across(centres[last] + widths[last] / 2)].sort((a, b) => a - b);
    const range = make("span", { class: "range", dir: "auto" }, row[FORM]);
    Object.assign(range.style, { left: `${ends[0] + 4}px`, minWidth: `${ends[1] - ends[0] - 8}px`, top: `${ground + height + 4}px` });
    return range;
  });
  stage.append(...ranges);
  Object.assign(stage.style, { width: `${width}px`, height: `${ground + height + (ranges.length ? 26 : 4)}px` });
}

function cardOf(sentence, editing) {
  const doubt = sentence.doubt === undefined ? "" : `doubt ${sentence.doubt.toFixed(2)}`;
  const parts = [
    make("div", { class: "top" },
      make("span", { class: "id", dir: "auto" }, sentence.id ?? `sentence ${sentence.index + 1}`),
      make("span", { title: "How unsure the parser was: the mean of −log probability over the words" }, doubt),
      ...(editing ? [make("button", { class: "tick", "aria-pressed": sentence.done }, sentence.done ? "✓ Done" : "Mark done")] : [])),
    make("p", { class: "text", dir: "auto" }, sentence.text),
    ...(sentence.translations ?? []).map((text) => make("p", { class: "translation", dir: "auto" }, text)),
  ];
  if (sentence.notes) {
    const count = sentence.notes.length === 1 ? "1 comment" : `${sentence.notes.length} comments`;
    parts.push(make("details", { class: "comments" }, make("summary", {}, count), make("pre", { dir: "auto" }, sentence.notes.join("\n"))));
  }
  parts.push(make("div", { class: "tree", role: "group", "aria-label": "Tree" }));
  if (sentence.problems.length) {
    parts.push(make("p", { class: "problem", dir: "auto" }, "⚠ " + sentence.problems.map((problem) => problem.text).join(" · ")));
  }
  return parts;
}

const GROUPS = [[HEAD, "Head"], [LABEL, "Label"], [TAG, "Tag"]];

// What the parser considered for the chosen word, and fields for anything else. The choices are numbered for the keyboard.
function panelOf(sentence, word, editing) {
  const row = sentence.words[word];
  const more = [["lemma", 2], ["xpos", 4], ["feats", 5]].filter(([, at]) => row[at] !== "_").map(([name, at]) => ` · ${name} ${row[at]}`);
  const rest = row[MISC].split("|").filter((item) => item !== "_" && !OURS.test(item));
  const title = make("h2", {}, make("b", { dir: "auto" }, row[FORM]), ` ${word + 1}`, more.join(""), rest.length ? ` · ${rest.join(" ")}` : "");
  let key = 0;
  const groups = GROUPS.map(([column, name]) => {
    const choices = [...sentence.choices[word][column]];
    if (!choices.some(({ value }) => value === row[column])) choices.push({ value: row[column], share: NaN });
    return make("section", {}, make("h3", {}, name),
      ...choices.map((choice) => choiceButton(sentence, row, column, choice, ++key, editing)), ...(editing ? [otherOf(column)] : []));
  });
  return make("div", { class: "panel" }, title, ...groups);
}

function choiceButton(sentence, row, column, { value, share }, key, editing) {
  const shown = column === HEAD ? [make("bdi", {}, nameOf(sentence, value)), value > 0 ? ` ${value}` : ""] : [value];
  const button = make("button", {
    class: "choice", "data-column": column, "data-value": value, "aria-pressed": value === row[column], disabled: editing ? undefined : "",
  }, ...(editing && key < 10 ? [make("kbd", {}, String(key))] : []), make("span", { class: "value" }, ...shown),
    make("span", { class: "share" }, share >= 0 ? show(share) : ""));
  if (share >= 0) {
    button.append(make("span", { class: "bar" }));
    button.lastChild.style.width = `${100 * share}%`;
  }
  return button;
}

function otherOf(column) {
  if (column === HEAD) {
    return make("div", { class: "other" },
      make("input", { "data-column": HEAD, placeholder: "number", "aria-label": "Head: its number, 0 is ROOT", inputmode: "numeric", autocomplete: "off" }),
      make("button", { class: "pick", title: "Then click the head in the tree (h)" }, "Pick on the tree"));
  }
  const [list, name] = column === LABEL ? ["labels", "label"] : ["tags", "tag"];
  return make("div", { class: "other" },
    make("input", { "data-column": column, list, placeholder: `other ${name}`, "aria-label": `Another ${name}`, autocomplete: "off", autocapitalize: "off", spellcheck: "false" }));
}
