"use strict";
// The sentences as columns of CoNLL-U, whether they are trees, what was changed in them, and the way back to CoNLL-U.

const ID = 0, FORM = 1, TAG = 3, HEAD = 6, LABEL = 7, DEPS = 8, MISC = 9, DONE = "done";
const UNSURE = 0.8; // A word is worth a look where the parser gave what it chose less than this.
const OURS = /^[A-Z]\w*(Prob|Alt)=/;
const CONFIDENCE = { [HEAD]: "Head", [LABEL]: "Label", [TAG]: "UPOS" };
const TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split(" ");
const LABELS = ("acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl " +
  "fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp").split(" ");

function readSentence({ conllu, rtl }, index) {
  const lines = conllu.split("\n");
  const comments = lines.filter((line) => line.startsWith("#"));
  const rows = lines.filter((line) => !line.startsWith("#")).map((line) => line.split("\t"));
  const drafts = rows.filter((row) => /^[0-9]+$/.test(row[ID]));
  const sentence = { index, rtl, comments, rows, drafts, words: drafts.map((row) => [...row]), done: false, problems: [] };
  for (const line of comments) {
    const [, key, value] = /^# *([^=]*?) *= *(.*)$/.exec(line) ?? [];
    if (key === "sent_id") sentence.id = value;
    else if (key === "text") sentence.text = value;
    else if (key === "doubt") sentence.doubt = parseFloat(value);
    else if (key === "translation" || /^text_[a-z-]+$/i.test(key)) (sentence.translations ??= []).push(value);
    else (sentence.notes ??= []).push(line);
  }
  sentence.text ??= drafts.map((row) => row[FORM]).join(" ");
  sentence.choices = drafts.map(choicesOf);
  return sentence;
}

// What the parser considered for a word's head, label and tag, with probabilities: first what it chose, then its rivals.
function choicesOf(row) {
  const misc = new Map(row[MISC].split("|").map((item) => [item.slice(0, item.indexOf("=")), item.slice(item.indexOf("=") + 1)]));
  const choices = {};
  for (const [column, name] of Object.entries(CONFIDENCE)) {
    choices[column] = [{ value: row[column], share: parseFloat(misc.get(name + "Prob")) }];
    for (const rival of (misc.get(name + "Alt") ?? "").split(",").filter(Boolean)) {
      const colon = rival.lastIndexOf(":"); // a label may hold one itself: obl:arg:0.10
      choices[column].push({ value: rival.slice(0, colon), share: parseFloat(rival.slice(colon + 1)) });
    }
  }
  return choices;
}

const isMine = (sentence, word, column) => sentence.words[word][column] !== sentence.drafts[word][column];

// What a person has looked at is no longer unsure.
const isWeak = (sentence, word, column) =>
  !sentence.done && !isMine(sentence, word, column) && sentence.choices[word][column][0].share < UNSURE;

const hasWeak = (sentence) =>
  sentence.words.some((_, word) => [HEAD, LABEL, TAG].some((column) => isWeak(sentence, word, column)));

const isChanged = (sentence) =>
  sentence.words.some((_, word) => [HEAD, LABEL, TAG].some((column) => isMine(sentence, word, column)));

// Why a sentence cannot be saved: each reason with the words and the column that it concerns. Words are counted from 0 here.
function problemsOf({ words }) {
  const problems = [];
  const name = (word) => `${words[word][FORM]} (${word + 1})`;
  const found = (reason, column, at) => at.length && problems.push({ text: `${reason}: ${at.map(name).join(", ")}`, column, at });
  const where = (test) => [...words.keys()].filter((word) => test(words[word]));
  const roots = where((row) => row[HEAD] === "0");
  const headless = where((row) => row[HEAD] === "_");
  if (roots.length > 1) found(`${roots.length} roots`, HEAD, roots);
  if (!roots.length && !headless.length) problems.push({ text: "no root", column: HEAD, at: [] });
  found("no head", HEAD, headless);
  for (const cycle of cyclesOf(words)) found("cycle", HEAD, cycle);
  found("only the word below ROOT is labelled root", LABEL, where((row) => (row[LABEL] === "root") !== (row[HEAD] === "0") && row[HEAD] !== "_"));
  found("not a label of Universal Dependencies", LABEL,
    where((row) => !/^[a-z]+(:[a-z]+)?$/.test(row[LABEL]) || !LABELS.includes(row[LABEL].split(":")[0])));
  found("not a tag of Universal Dependencies", TAG, where((row) => !TAGS.includes(row[TAG])));
  return problems;
}

function cyclesOf(words) {
  const seenFrom = new Array(words.length), cycles = [];
  for (let start = 0; start < words.length; start++) {
    let word = start;
    while (word >= 0 && seenFrom[word] === undefined) { // NaN, the head "_", ends the way as ROOT does
      seenFrom[word] = start;
      word = words[word][HEAD] - 1;
    }
    if (word >= 0 && seenFrom[word] === start) {
      const cycle = [word];
      for (let next = words[word][HEAD] - 1; next !== word; next = words[next][HEAD] - 1) cycle.push(next);
      cycles.push(cycle);
    }
  }
  return cycles;
}

// A change is a list of cells [sentence, word, column, before, after]. The log of all changes is what undo walks on and
// what the browser keeps, so that a reload loses neither the corrections nor the way back.
class Log {
  constructor(sentences, key) {
    Object.assign(this, { sentences, key, changes: [], at: 0, view: {}, kept: true });
  }

  restore() {
    this.changes = [];
    this.at = 0;
    for (const sentence of this.sentences) Object.assign(sentence, { words: sentence.drafts.map((row) => [...row]), done: false });
    try {
      const stored = JSON.parse(localStorage.getItem(this.key) ?? "{}");
      this.changes = stored.changes ?? [];
      this.view = stored.view ?? {};
      for (const cells of this.changes.slice(0, stored.at)) this.walk(cells, 4);
      this.at = stored.at ?? 0;
    } catch {
      this.kept = false; // no storage: a private window, or a browser that gives files none
    }
    for (const sentence of this.sentences) sentence.problems = problemsOf(sentence);
  }

  keep() {
    try {
      localStorage.setItem(this.key, JSON.stringify({ changes: this.changes, at: this.at, view: this.view }));
      this.kept = true;
    } catch {
      this.kept = false;
    }
  }

  // Do, undo and redo give the cells that changed, none if there was nothing to do.
  do(cells) {
    cells = cells.filter((cell) => cell[3] !== cell[4]);
    if (cells.length) {
      this.changes.splice(this.at++, Infinity, cells);
      this.walk(cells, 4);
      this.keep();
    }
    return cells;
  }

  undo() {
    if (!this.at) return [];
    const cells = this.walk(this.changes[--this.at], 3);
    this.keep();
    return cells;
  }

  redo() {
    if (this.at === this.changes.length) return [];
    const cells = this.walk(this.changes[this.at++], 4);
    this.keep();
    return cells;
  }

  walk(cells, side) {
    for (const cell of cells) {
      const sentence = this.sentences[cell[0]];
      if (cell[2] === DONE) sentence.done = cell[side];
      else sentence.words[cell[1]][cell[2]] = cell[side];
      sentence.problems = problemsOf(sentence);
    }
    return cells;
  }
}

// The sentence as it is saved: corrected, and without what only the page needed.
function asConllu(sentence) {
  const lines = sentence.comments.filter((line) => !/^# *doubt *=/.test(line));
  for (const row of sentence.rows) {
    const word = sentence.drafts.indexOf(row);
    const columns = word < 0 ? [...row] : [...sentence.words[word]];
    if (word >= 0) columns[DEPS] = enhanced(row, columns);
    columns[MISC] = row[MISC].split("|").filter((item) => !OURS.test(item)).join("|") || "_";
    lines.push(columns.join("\t"));
  }
  return lines.join("\n") + "\n\n";
}

// Where the enhanced graph repeated the arc that was corrected, it repeats the corrected one.
function enhanced(before, after) {
  const arcs = after[DEPS].split("|"), old = `${before[HEAD]}:${before[LABEL]}`, now = `${after[HEAD]}:${after[LABEL]}`;
  if (old === now || !arcs.includes(old)) return after[DEPS];
  const next = new Set(arcs.map((arc) => (arc === old ? now : arc)));
  return [...next].sort((a, b) => parseFloat(a) - parseFloat(b)).join("|");
}
