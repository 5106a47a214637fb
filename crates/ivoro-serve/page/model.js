// The model that the page shows: what it is called, what it knows, and what this caller may do with it.

import { get } from './api.js';
import { $, $$, count, h, hue, show } from './dom.js';

const RANKS = { ask: 0, teach: 1, admin: 2 };

export const model = { name: null, details: {}, classes: [], hash: null, query: null };

export const base = (name = model.name) => `api/v1/models/${encodeURIComponent(name)}`;

function rank() {
  const told = model.details.rights ?? model.details.right ?? 'admin';
  return Math.max(...[told].flat().map((one) => RANKS[one] ?? 0));
}
export const readOnly = () => Boolean(model.details.read_only);
export const may = (right) => rank() >= RANKS[right] && (right === 'ask' || !readOnly());

export const samples = () => model.classes.reduce((sum, one) => sum + one.samples, 0);
export const knows = (name) => model.classes.some((one) => one.name === name);

let running = null;
let next = null;
// Asks the server again what the model is. What is asked meanwhile is answered by one later look.
export function refresh() {
  if (running) {
    next ||= running.catch(() => {}).then(() => { next = null; return refresh(); });
    return next;
  }
  running = (async () => {
    try {
      const [details, classes] = await Promise.all([get(base()), get(`${base()}/classes`)]);
      model.details = details;
      model.hash = details.hash;
      model.classes = Array.isArray(classes) ? classes : classes.classes;
    } finally {
      running = null;
    }
    for (const { name } of model.classes) hue(name);
    draw();
    document.dispatchEvent(new Event('model-changed'));
  })();
  return running;
}

function draw() {
  $('#state').textContent = `${count(model.classes.length, 'class', 'classes')} · ${count(samples(), 'photo')}`;
  $('#class-names').replaceChildren(...model.classes.map(({ name }) => h('option', { value: name })));
  for (const element of $$('[data-needs]')) show(element, may(element.dataset.needs));
  const note = $('#rights-note');
  const sentence = readOnly() ? 'This server is read-only: ask, look and download. Nothing can be changed here.'
    : rank() === 0 ? 'Your token may ask. It may not teach or change anything.'
      : '';
  note.textContent = sentence;
  show(note, Boolean(sentence));
}
