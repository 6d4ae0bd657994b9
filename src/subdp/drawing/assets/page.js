"use strict";
// The page: which sentences are shown, what is chosen, and what mouse and keyboard do.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const editing = data.edit;
const sentences = data.sentences.map(readSentence);
const log = new Log(sentences, `subdp:${data.key}`);
const cards = sentences.map((sentence) => make("article", { class: "card", "data-sentence": sentence.index }));
const FILTERS = {
  all: ["All", () => true],
  todo: ["To do", (sentence) => !sentence.done],
  done: ["Done", (sentence) => sentence.done],
  unsure: ["Unsure", hasWeak],
  changed: ["Corrected", isChanged],
  wrong: ["Not valid", (sentence) => sentence.problems.length > 0],
};
let listed = []; // the sentences that are shown, in their order
let chosen = null; // {sentence, word}
let picking = false; // the next word clicked becomes the head of the chosen one
let unsaved = false;

// ---- Drawing -------------------------------------------------------------------------------------------------------

// Far from the screen a card is an empty box of the height it had: thousands of sentences cost what a few do.
const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting && !target.firstChild) draw(target.dataset.sentence);
    else if (!isIntersecting && target.firstChild && chosen?.sentence !== +target.dataset.sentence) {
      target.style.minHeight = `${target.offsetHeight}px`;
      target.replaceChildren();
    }
  }
}, { rootMargin: "900px 0px" });

function draw(index) {
  const card = cards[index], sentence = sentences[index], word = chosen?.sentence === +index ? chosen.word : undefined;
  const scrolled = card.querySelector(".tree")?.scrollLeft;
  card.style.minHeight = "0";
  card.classList.toggle("done", sentence.done);
  card.classList.toggle("open", word !== undefined);
  card.replaceChildren(...cardOf(sentence, editing));
  const tree = card.querySelector(".tree");
  drawTree(tree, sentence, word);
  if (scrolled !== undefined) tree.scrollLeft = scrolled;
  if (word !== undefined) card.append(panelOf(sentence, word, editing));
}

function list() {
  const wanted = $("search").value.trim().toLowerCase(), [, holds] = FILTERS[$("filter").value];
  const texts = (sentence) => [sentence.id ?? "", sentence.text, ...(sentence.translations ?? [])].join("\n").toLowerCase();
  listed = sentences.filter((sentence) => holds(sentence) && (!wanted || texts(sentence).includes(wanted)));
  if ($("order").value === "doubt") listed.sort((a, b) => (b.doubt ?? 0) - (a.doubt ?? 0));
  if (chosen && !listed.includes(sentences[chosen.sentence])) unchoose();
  $("sentences").replaceChildren(...listed.map((sentence) => cards[sentence.index]));
  if (!listed.length) $("sentences").append(make("p", { class: "empty" }, "No sentences to show."));
}

function tell() {
  const done = sentences.filter((sentence) => sentence.done).length, count = sentences.length;
  const words = count === 1 ? "1 sentence" : `${count} sentences`;
  $("progress").textContent = editing ? `${done} of ${words} done` : words;
  $("meter").firstElementChild.style.width = `${(100 * done) / count}%`;
  for (const option of $("filter").options) {
    const [name, holds] = FILTERS[option.value];
    option.textContent = `${name} (${sentences.filter(holds).length})`;
  }
  $("save").textContent = `Save done (${done})`;
  $("save").disabled = !done;
  $("undo").disabled = !log.at;
  $("redo").disabled = log.at === log.changes.length;
  if (editing && !log.kept) notify("This browser cannot keep your changes: save before you close the page.", true);
}

function notify(text, bad = false) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
  $("notice").classList.toggle("bad", bad);
}

// ---- Choosing and changing ------------------------------------------------------------------------------------------

const buttonOf = (at) => cards[at.sentence].querySelector(`.word[data-word="${at.word}"]`);

function choose(sentence, word) {
  const before = chosen, place = cards[sentence].firstChild && cards[sentence].getBoundingClientRect().top;
  chosen = { sentence, word };
  pick(false);
  if (before && before.sentence !== sentence) draw(before.sentence);
  draw(sentence);
  // The card that is looked at stays where it is when one above it closes its panel.
  if (place > 0 && place < innerHeight) scrollBy(0, cards[sentence].getBoundingClientRect().top - place);
  buttonOf(chosen).focus({ preventScroll: true });
  cards[sentence].lastChild.scrollIntoView({ block: "nearest" });
  buttonOf(chosen).scrollIntoView({ block: "nearest", inline: "nearest" });
  view();
}

function unchoose() {
  const before = chosen;
  chosen = null;
  pick(false);
  if (before) {
    draw(before.sentence);
    buttonOf(before).focus({ preventScroll: true });
    view();
  }
}

function pick(on) {
  picking = on;
  document.body.classList.toggle("picking", on);
}

function change(cells) {
  const [first] = cells;
  if (!first) return;
  unsaved = true;
  notify("");
  for (const index of new Set(cells.map((cell) => cell[0]))) draw(index);
  if (!listed.includes(sentences[first[0]])) return tell();
  if (first[2] !== DONE) choose(first[0], first[1]);
  else cards[first[0]].scrollIntoView({ block: "nearest" });
  tell();
}

const cell = (sentence, word, column, value) => [sentence, word, column, sentences[sentence].words[word][column], value];

function take(column, value, at = chosen) {
  if (!editing || !at) return;
  const { sentence, word } = at;
  const cells = [cell(sentence, word, column, value)];
  if (column === HEAD && value === "0") cells.push(cell(sentence, word, LABEL, "root"));
  const done = log.do(cells);
  if (done.length) change(done);
  else choose(sentence, word);
}

// A head is a word of the sentence (from 0) or ROOT (-1); a word is never its own.
function takeHead(at, head) {
  if (head !== at.word) take(HEAD, String(head + 1), at);
}

function tick(index, onwards) {
  const { done } = sentences[index];
  change(log.do([[index, -1, DONE, done, !done]]));
  const next = listed[listed.indexOf(sentences[index]) + 1];
  if (onwards && !done && next) choose(next.index, 0);
  else cards[index].querySelector(".tick").focus({ preventScroll: true });
}

function save(which, name) {
  const [good, bad] = [which.filter((one) => !one.problems.length), which.filter((one) => one.problems.length)];
  const names = bad.map((one) => one.id ?? `sentence ${one.index + 1}`).join(", ");
  const left = bad.length ? ` Left out, because the tree is not valid: ${names}.` : "";
  if (!good.length) return notify(which.length ? left.trim() : "No sentence is marked done yet.", true);
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob(good.map(asConllu), { type: "text/plain" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  unsaved = false;
  notify(`Saved ${good.length === 1 ? "1 sentence" : `${good.length} sentences`} in ${name}.${left}`, bad.length > 0);
}

const saveDone = () => save(sentences.filter((sentence) => sentence.done), `${data.name}-corrected.conllu`);

function view() {
  log.view = { filter: $("filter").value, order: $("order").value, search: $("search").value, chosen };
  if (editing) log.keep();
}

// ---- Moving ---------------------------------------------------------------------------------------------------------

function moveWord(step) {
  const words = sentences[chosen.sentence].words.length, word = chosen.word + step;
  if (word >= 0 && word < words) choose(chosen.sentence, word);
}

function moveSentence(step) {
  const at = chosen ? listed.indexOf(sentences[chosen.sentence]) + step : 0;
  if (listed[at]) choose(listed[at].index, 0);
}

function nextUnsure() {
  const start = chosen ? listed.indexOf(sentences[chosen.sentence]) : 0;
  for (let step = 0; step <= listed.length; step++) {
    const sentence = listed[(start + step) % listed.length];
    const from = step === 0 && chosen ? chosen.word + 1 : 0;
    for (let word = from; word < (sentence?.words.length ?? 0); word++) {
      if ([HEAD, LABEL, TAG].some((column) => isWeak(sentence, word, column))) return choose(sentence.index, word);
    }
  }
  notify("No unsure word is left among the sentences shown.");
}

// ---- Mouse ----------------------------------------------------------------------------------------------------------

$("sentences").addEventListener("click", ({ target }) => {
  const card = target.closest(".card"), index = +card?.dataset.sentence;
  const word = target.closest("[data-word]"), choice = target.closest(".choice");
  if (word && picking && chosen.sentence === index) takeHead(chosen, +word.dataset.word);
  else if (word && +word.dataset.word >= 0) choose(index, +word.dataset.word);
  else if (choice) take(+choice.dataset.column, choice.dataset.value);
  else if (target.closest(".pick")) pick(!picking);
  else if (target.closest(".tick")) tick(index, false);
});

// Dragging a word onto its head. A finger scrolls instead, and picks.
let drag = null;
$("sentences").addEventListener("pointerdown", (event) => {
  const word = event.target.closest(".word");
  if (!editing || !word || event.button || event.pointerType === "touch") return;
  const sentence = +word.closest(".card").dataset.sentence;
  drag = { word, at: { sentence, word: +word.dataset.word }, x: event.clientX, y: event.clientY };
});

document.addEventListener("pointermove", (event) => {
  if (!drag || (!drag.line && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 6)) return;
  const card = cards[drag.at.sentence], tree = card.querySelector(".tree"), picture = card.querySelector(".stage svg");
  if (!drag.line) {
    document.body.classList.add("dragging");
    picture.append((drag.line = make("path", { class: "pull" })));
  }
  const { left, right } = tree.getBoundingClientRect();
  tree.scrollLeft += event.clientX < left + 30 ? -12 : event.clientX > right - 30 ? 12 : 0;
  const origin = picture.getBoundingClientRect(), start = buttonOf(drag.at).getBoundingClientRect();
  const x = start.left + start.width / 2 - origin.left, y = start.top - origin.top;
  drag.line.setAttribute("d", `M${x} ${y}L${event.clientX - origin.left} ${event.clientY - origin.top}`);
  drag.target?.classList.remove("target");
  const under = document.elementFromPoint(event.clientX, event.clientY)?.closest(".word, .rootdrop");
  drag.target = under && card.contains(under) && under !== buttonOf(drag.at) ? under : null;
  drag.target?.classList.add("target");
});

function endDrag(taken) {
  const { line, target, at, word } = drag ?? {};
  drag = null;
  document.body.classList.remove("dragging");
  line?.remove();
  target?.classList.remove("target");
  if (taken && target) takeHead(at, +target.dataset.word);
  // Leaving a field by this click took what was typed there and drew the card anew, so that the click meets no word.
  else if (taken && word && !word.isConnected) choose(at.sentence, at.word);
}
document.addEventListener("pointerup", () => endDrag(true));
document.addEventListener("pointercancel", () => endDrag(false));

// ---- Keyboard -------------------------------------------------------------------------------------------------------

const field = (column) => chosen && cards[chosen.sentence].querySelector(`input[data-column="${column}"]`);

$("sentences").addEventListener("change", ({ target }) => {
  const column = +target.dataset.column, value = target.value.replace(/\s/g, "");
  if (!value || !chosen) return;
  if (column !== HEAD) take(column, value);
  else if (/^[0-9]+$/.test(value) && +value <= sentences[chosen.sentence].words.length) takeHead(chosen, value - 1);
  else notify(`There is no word ${value} in this sentence.`, true);
});

const KEYS = {
  n: nextUnsure,
  j: () => moveSentence(1),
  k: () => moveSentence(-1),
  Escape: () => (drag ? endDrag(false) : picking ? pick(false) : unchoose()),
};
const EDIT_KEYS = {
  z: () => change(log.undo()),
  Z: () => change(log.redo()),
  s: saveDone,
  d: () => chosen && tick(chosen.sentence, true),
  h: () => { if (chosen) { field(HEAD).focus(); pick(true); } },
  l: () => field(LABEL)?.focus(),
  t: () => field(TAG)?.focus(),
};
const CONTROL_KEYS = { z: "z", Z: "Z", y: "Z", s: "s" };

function actionOf({ key, target, ctrlKey, metaKey, altKey }) {
  const typing = target.matches("input, select");
  if (ctrlKey || metaKey) return editing && (!typing || key === "s") && !altKey && EDIT_KEYS[CONTROL_KEYS[key]];
  if (altKey) return null;
  if (typing) return key === "Escape" && chosen ? () => choose(chosen.sentence, chosen.word) : null;
  if (target.closest(".tree") && key.startsWith("Arrow")) {
    const card = target.closest(".card"), at = { sentence: +card.dataset.sentence, word: +target.dataset.word };
    const forwards = sentences[at.sentence].rtl ? "ArrowLeft" : "ArrowRight";
    return () => {
      chosen ??= at;
      if (key === "ArrowUp" || key === "ArrowDown") moveSentence(key === "ArrowUp" ? -1 : 1);
      else moveWord(key === forwards ? 1 : -1);
    };
  }
  if (editing && chosen && /^[1-9]$/.test(key)) return () => cards[chosen.sentence].querySelectorAll(".choice")[key - 1]?.click();
  return KEYS[key] ?? (editing && EDIT_KEYS[key]);
}

document.addEventListener("keydown", (event) => {
  const action = actionOf(event);
  if (!action) return;
  event.preventDefault();
  action();
});

// ---- Start ----------------------------------------------------------------------------------------------------------

$("unsure").onclick = nextUnsure;
$("undo").onclick = EDIT_KEYS.z;
$("redo").onclick = EDIT_KEYS.Z;
$("save").onclick = saveDone;
$("save-all").onclick = () => save(sentences, `${data.name}-all.conllu`);
for (const id of ["filter", "order", "search"]) $(id).addEventListener("input", () => { list(); view(); });
addEventListener("beforeunload", (event) => { if (unsaved && !log.kept) event.preventDefault(); });
addEventListener("storage", ({ key }) => { if (editing && key === log.key) start(); }); // corrected in another tab

function start() {
  if (editing) log.restore();
  for (const id of ["filter", "order", "search"]) if (log.view[id] !== undefined) $(id).value = log.view[id];
  chosen = null;
  for (const card of cards) card.replaceChildren();
  list();
  for (const card of cards) { near.unobserve(card); near.observe(card); }
  tell();
}

document.body.classList.toggle("reading", !editing);
$("threshold").textContent = UNSURE.toFixed(2);
$("order").hidden = !sentences.some((sentence) => sentence.doubt > 0);
for (const name in FILTERS) {
  if (editing || !["todo", "done", "changed", "wrong"].includes(name)) $("filter").append(make("option", { value: name }));
}
const used = (column) => sentences.flatMap((sentence) => sentence.drafts.map((row) => row[column]));
for (const [id, names] of [["labels", [...LABELS, ...used(LABEL)]], ["tags", TAGS]]) {
  $(id).append(...[...new Set(names)].sort().map((value) => make("option", { value })));
}
new ResizeObserver(() => { document.documentElement.style.scrollPaddingTop = `${$("bar").offsetHeight + 8}px`; }).observe($("bar"));
start();
const last = log.view.chosen;
if (last && listed.includes(sentences[last.sentence])) choose(last.sentence, last.word);
