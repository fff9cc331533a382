"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const columns = document.getElementById("columns");
const dock = document.getElementById("dock");
const page = document.querySelector("main");
const about = document.getElementById("about");
const chooser = document.getElementById("kernel");

const HELP =
  "Hover a value: here stands its history, from the program as written to the source, with the rules of each step, and what else is equal to it. " +
  "A click or Enter holds it, Esc lets go; arrows move between lines and stages.";

let shown = new Map(); // a value's key: the lines that show it
let below = new Map(); // a value's key: the values of later stages that come from it
let pinned = null; // the line that was clicked

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// ---- columns

function showKernel(number) {
  const kernel = data.kernels[number];
  columns.replaceChildren();
  dock.replaceChildren();
  shown = new Map();
  below = new Map();
  let before = null;
  for (const { stage, modules } of kernel.columns) {
    const text = modules.map((key) => bare(data.modules[key])).join("\n");
    const same = text === before && !modules.some((key) => tells(data.modules[key]));
    const column = addColumn(columns, stage, same ? "as before" : "", same);
    for (const key of modules) column.append(moduleOf(data.modules[key], stage === "written"));
    before = text;
  }
  const source = addColumn(dock, "source", kernel.name, false);
  source.parentElement.classList.add("source");
  source.append(...kernel.source.map((line) => lineOf([line.text], line.values)));
  for (const key of shown.keys())
    for (const ancestor of data.values[key].ancestors) put(below, ancestor, key);
  for (const lines of page.querySelectorAll(".lines")) lines.querySelector("[data-values]")?.setAttribute("tabindex", "0");
  pin(null);
}

function tells(module) {
  const value = data.values[module.lines[0].value];
  return value.rules.length > 0 || value.members.length > 0;
}

function bare(module) {
  return module.lines.slice(1).map((line) => line.parts.map((part) => (Array.isArray(part) ? part[0] : part)).join("")).join("\n");
}

function addColumn(parent, name, told, closed) {
  const column = make("section", closed ? "column closed" : "column");
  const title = make("h2");
  const button = make("button", "", name);
  button.type = "button";
  button.setAttribute("aria-expanded", String(!closed));
  button.addEventListener("click", () => fold(column, !column.classList.contains("closed")));
  button.append(make("small", "", told));
  title.append(button);
  const lines = make("div", "lines");
  lines.dataset.stage = name;
  column.append(title, lines);
  parent.append(column);
  return lines;
}

function fold(column, closed) {
  column.classList.toggle("closed", closed);
  column.querySelector("h2 > button").setAttribute("aria-expanded", String(!closed));
}

// All stages but the first and the last, or, where that is so already, none.
function foldStages() {
  const between = [...columns.children].slice(1, -1);
  const closed = between.some((column) => !column.classList.contains("closed"));
  for (const column of between) fold(column, closed);
}

function moduleOf(module, plain) {
  const block = make("div", "module");
  const [head, ...lines] = module.lines;
  if (!plain) block.append(lineOf(head.parts, [head.value], "head"));
  block.append(...lines.map((line) => lineOf(line.parts, line.value ? [line.value] : [])));
  return block;
}

function lineOf(parts, values, kind) {
  const line = make("div", kind ? `line ${kind}` : "line");
  for (const part of parts) line.append(...(Array.isArray(part) ? [nameOf(part)] : unbroken(part)));
  if (values.length) {
    line.dataset.values = JSON.stringify(values);
    line.tabIndex = -1;
    line.setAttribute("role", "button");
    for (const key of values) put(shown, key, line);
  }
  return line;
}

// A text in which no line ends within an arrow.
function unbroken(text) {
  return text.split(/(->)/).map((piece) => (piece === "->" ? make("span", "arrow", piece) : piece));
}

function nameOf([name, key]) {
  const element = make("span", "name", name);
  if (key) element.dataset.values = JSON.stringify([key]);
  return element;
}

function put(map, key, item) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(item);
}

// ---- values

function reached(keys, next) {
  const found = new Set();
  const open = [...keys];
  while (open.length)
    for (const key of next(open.pop()))
      if (!found.has(key)) {
        found.add(key);
        open.push(key);
      }
  return found;
}

const ancestors = (keys) => reached(keys, (key) => data.values[key].ancestors);
const heirs = (keys) => reached(keys, (key) => below.get(key) ?? []);

function show(element) {
  for (const line of page.querySelectorAll(".line.here, .line.before, .line.after")) line.classList.remove("here", "before", "after");
  for (const name of page.querySelectorAll(".marked")) name.classList.remove("marked");
  if (element === null) {
    about.replaceChildren(make("p", "empty", HELP));
    return;
  }
  const keys = JSON.parse(element.dataset.values);
  const alike = keys.flatMap((key) => [key, ...data.values[key].same]);
  mark(heirs(alike), "after");
  mark(ancestors(alike), "before");
  mark(alike, "here");
  if (element.classList.contains("name")) element.classList.add("marked");
  else if (!keys.some((key) => shown.get(key)?.length === 1)) element.classList.add("here");
  about.replaceChildren(...keys.map(sectionOf));
  about.scrollTop = 0;
}

function mark(keys, kind) {
  for (const key of keys)
    for (const line of shown.get(key) ?? []) {
      line.classList.remove("here", "before", "after");
      line.classList.add(kind);
    }
}

function pin(element) {
  pinned?.classList.remove("pinned");
  pinned = element === pinned ? null : element;
  pinned?.classList.add("pinned");
  show(pinned);
  if (pinned !== null) bringIntoSight();
}

function bringIntoSight() {
  for (const lines of page.querySelectorAll(".lines")) {
    const line = lines.querySelector(".here, .before, .after");
    if (line === null || lines.contains(pinned)) continue;
    const up = line.offsetTop - lines.offsetTop;
    if (up < lines.scrollTop || up > lines.scrollTop + lines.clientHeight - 40) lines.scrollTop = up - lines.clientHeight / 3;
  }
}

// ---- what is told of a value

function sectionOf(key) {
  const value = data.values[key];
  const section = make("section");
  const title = make("h2", "", value.name);
  title.append(make("small", "", value.stage === value.name ? "" : `${value.stage}, module ${value.module}`));
  const made = make("div");
  addRules(made, value);
  addMembers(made, value);
  section.append(title, historyOf(key, value), made);
  return section;
}

// The value at each stage, from the program as written to the source, with the rules that brought it there.
function historyOf(key, value) {
  const own = new Set([key, ...value.same]);
  const kinds = new Map();
  for (const other of heirs(own)) kinds.set(other, "after");
  for (const other of ancestors(own)) kinds.set(other, "before");
  for (const other of own) kinds.set(other, "here");
  const block = make("div");
  const list = make("ol", "history");
  for (const lines of page.querySelectorAll(".lines")) {
    const steps = stepsAt(lines, kinds);
    if (steps.length) list.append(stageOf(lines.dataset.stage, steps, kinds));
  }
  block.append(make("h3", "", "History"), list);
  return block;
}

// The lines of a stage that show values of a history, each with those that it shows.
function stepsAt(lines, kinds) {
  const found = [];
  for (const line of lines.querySelectorAll(".line[data-values]")) {
    const keys = JSON.parse(line.dataset.values).filter((key) => kinds.has(key));
    if (keys.length) found.push([line, keys]);
  }
  return found;
}

function stageOf(stage, steps, kinds) {
  const source = stage === "source";
  const here = !source && steps.some(([, keys]) => keys.some((key) => kinds.get(key) === "here"));
  const item = make("li", here ? "here" : source ? "after" : kinds.get(steps[0][1][0]));
  const step = make("div", "step");
  const told = new Set();
  for (const [line, keys] of steps) {
    const button = make("button", "", line.textContent.trim());
    button.type = "button";
    button.addEventListener("click", () => pin(line));
    step.append(button);
    if (!source) for (const key of keys) for (const number of data.values[key].rules) told.add(number);
  }
  if (told.size) {
    const by = make("div", "by", "by ");
    for (const number of told) {
      const name = make("code", "", data.rules[number].name);
      name.title = `${data.rules[number].place}\n${data.rules[number].doc}`;
      by.append(name);
    }
    step.append(by);
  }
  item.append(make("span", "stage", stage), step);
  return item;
}

function addRules(section, value) {
  section.append(make("h3", "", "Rules"));
  if (!value.rules.length) {
    section.append(make("p", "empty", value.stage === "written" ? "It was written." : "No rule of this stage made it."));
    return;
  }
  const list = make("ul", "rules");
  for (const number of value.rules) {
    const rule = data.rules[number];
    const item = make("li");
    item.append(make("code", "", rule.name), make("span", "place", rule.place), make("p", "", rule.doc));
    list.append(item);
  }
  section.append(list);
}

function addMembers(section, value) {
  if (!value.members.length) return;
  const table = make("table");
  const head = make("tr");
  for (const text of value.schedules ? ["", "µs"] : ["", "cost", "in all"]) head.append(make("th", "", text));
  table.append(head);
  for (const member of value.members) {
    const row = make("tr", member.taken ? "taken" : "");
    const text = make("td", "", member.text);
    if (member.why) text.append(make("span", "why", member.why));
    row.append(text, make("td", "", costOf(member.cost)));
    if (!value.schedules) row.append(make("td", "", costOf(member.total)));
    table.append(row);
  }
  section.append(make("h3", "", headingOf(value)), table);
  if (value.more) section.append(make("p", "empty", `and ${value.more} more`));
}

function headingOf(value) {
  if (value.schedules) return "Schedules, by the microseconds that they should take";
  return value.members.length > 1 ? "Equal to it" : "Nothing else is equal to it";
}

function costOf(cost) {
  return cost === null ? "–" : String(Number(cost.toFixed(2)));
}

// ---- what a reader does

function valueAt(event) {
  return event.target instanceof Element ? event.target.closest("[data-values]") : null;
}

page.addEventListener("pointerover", (event) => {
  const element = valueAt(event);
  if (element !== null && pinned === null) show(element);
});
for (const part of [columns, dock]) part.addEventListener("pointerleave", (event) => {
  if (!(event.relatedTarget instanceof Element && event.relatedTarget.closest("#about"))) show(pinned);
});
page.addEventListener("click", (event) => {
  const element = valueAt(event);
  if (element !== null) pin(element);
});
page.addEventListener("focusin", (event) => {
  if (valueAt(event) !== null && pinned === null && event.target.matches(":focus-visible")) show(valueAt(event));
});
page.addEventListener("keydown", (event) => {
  const line = event.target.closest(".line");
  if (line === null) return;
  const moves = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };
  if (event.key in moves) move(line, ...moves[event.key]);
  else if (event.key === "Enter" || event.key === " ") pin(line);
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") pin(null);
});

function move(line, across, down) {
  const lists = [...page.querySelectorAll(".column:not(.closed) > .lines")];
  const at = lists.findIndex((lines) => lines.contains(line));
  const lines = [...(lists[at + across]?.querySelectorAll(".line[data-values]") ?? [])];
  const related = lines.find((other) => other.matches(".here, .before, .after")) ?? lines[0];
  const target = across ? related : lines[lines.indexOf(line) + down];
  if (target === undefined) return;
  line.tabIndex = -1;
  target.tabIndex = 0;
  target.focus();
}

chooser.addEventListener("change", () => showKernel(Number(chooser.value)));
document.getElementById("fold").addEventListener("click", foldStages);
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

data.kernels.forEach((kernel, number) => chooser.append(new Option(kernel.name, String(number))));
showKernel(0);
