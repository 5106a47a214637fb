// The map of the classes: cells of their centres in the plane. It zooms and pans by pointer, wheel and keys.

import { get } from './api.js';
import { $, h, hue, svg } from './dom.js';
import { ask, headline } from './ask.js';
import { base, model } from './model.js';

const WIDTH = 960;
const HEIGHT = 600;
const DEEPEST = 60;

let view = { x: 0, y: 0, w: WIDTH, h: HEIGHT };
let picture = null;
let labels = [];

function bound() {
  view.w = Math.min(WIDTH, Math.max(WIDTH / DEEPEST, view.w));
  view.h = view.w * HEIGHT / WIDTH;
  view.x = Math.min(WIDTH - view.w, Math.max(0, view.x));
  view.y = Math.min(HEIGHT - view.h, Math.max(0, view.y));
}

// Letters keep their size on the screen, whatever the zoom and the width of the page.
function apply() {
  if (!picture) return;
  bound();
  picture.setAttribute('viewBox', `${view.x} ${view.y} ${view.w} ${view.h}`);
  const scale = view.w / (picture.clientWidth || WIDTH);
  picture.style.setProperty('--unit', scale);
  const taken = [];
  for (const { text, x, y, width } of labels) {
    const box = [x - width * scale / 2, y - 9 * scale, x + width * scale / 2, y + 9 * scale];
    const inside = x > view.x && x < view.x + view.w && y > view.y && y < view.y + view.h;
    const free = inside && taken.every((other) => box[2] < other[0] || box[0] > other[2] || box[3] < other[1] || box[1] > other[3]);
    text.setAttribute('visibility', free ? 'visible' : 'hidden');
    text.setAttribute('font-size', 13 * scale);
    text.setAttribute('y', y - 9 * scale);
    if (free) taken.push(box);
  }
}

function zoom(factor, at = { x: view.x + view.w / 2, y: view.y + view.h / 2 }) {
  const before = view.w;
  view.w *= factor;
  bound();
  const ratio = view.w / before;
  view.x = at.x - (at.x - view.x) * ratio;
  view.y = at.y - (at.y - view.y) * ratio;
  apply();
}

function pan(dx, dy) {
  view.x += dx;
  view.y += dy;
  apply();
}

export function all() {
  view = { x: 0, y: 0, w: WIDTH, h: HEIGHT };
  apply();
}

function place(event) {
  const box = picture.getBoundingClientRect();
  return { x: view.x + (event.clientX - box.left) / box.width * view.w, y: view.y + (event.clientY - box.top) / box.height * view.h };
}

function keys(event) {
  const step = view.w / 10;
  const acts = { ArrowLeft: () => pan(-step, 0), ArrowRight: () => pan(step, 0), ArrowUp: () => pan(0, -step), ArrowDown: () => pan(0, step), '+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1 / 0.7), 0: all, Home: all };
  if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  acts[event.key]();
}

// One finger or the mouse pans, two fingers zoom.
function pointers(element) {
  const down = new Map();
  element.addEventListener('pointerdown', (event) => { element.setPointerCapture(event.pointerId); down.set(event.pointerId, event); });
  element.addEventListener('pointermove', (event) => {
    const last = down.get(event.pointerId);
    if (!last) return;
    const scale = view.w / element.clientWidth;
    if (down.size === 1) pan((last.clientX - event.clientX) * scale, (last.clientY - event.clientY) * scale);
    else if (down.size === 2) {
      const other = [...down.values()].find((one) => one.pointerId !== event.pointerId);
      const distance = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      zoom(distance(last) / Math.max(1, distance(event)), place({ clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 }));
    }
    down.set(event.pointerId, event);
  });
  for (const name of ['pointerup', 'pointercancel']) element.addEventListener(name, (event) => down.delete(event.pointerId));
}

function drawCell({ class: name, polygon, centre }) {
  const shape = svg('polygon', { points: polygon.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(' '), class: 'cell' }, svg('title', {}, name));
  shape.style.setProperty('--hue', hue(name));
  return [shape, svg('circle', { cx: centre[0], cy: centre[1], class: 'centre' })];
}

function drawLabel({ class: name, centre }) {
  const shown = name.length > 22 ? `${name.slice(0, 21)}…` : name;
  const text = svg('text', { x: centre[0], 'text-anchor': 'middle', class: 'label' }, shown);
  labels.push({ text, x: centre[0], y: centre[1], width: 16 + 7.4 * shown.length });
  return text;
}

function drawQuery() {
  const query = model.query;
  if (!query) return [];
  const [x, y] = query.point;
  if (!(x >= 0 && x <= WIDTH && y >= 0 && y <= HEIGHT)) return [];
  const title = svg('title', {}, `${query.name}: ${query.said}`);
  return [svg('g', { class: 'query-point', transform: `translate(${x} ${y})` }, title, svg('circle', { class: 'halo' }), svg('circle', { class: 'spot' }))];
}

// The model may have learned since: then the photo lies elsewhere.
async function placeQuery(hash) {
  const query = model.query;
  if (!query || query.hash === hash) return;
  try {
    const reply = await ask([{ name: query.name, data: await query.file.arrayBuffer(), type: query.file.type }]);
    const [answer] = reply.answers;
    model.query = answer.point ? { ...query, point: answer.point, said: headline(answer), hash: reply.hash } : null;
  } catch {
    model.query = null;
  }
}

export async function drawMap() {
  const holder = $('#map');
  const note = $('#map-note');
  let told;
  try {
    told = await get(`${base()}/map?width=${WIDTH}&height=${HEIGHT}`);
  } catch (error) {
    if (![404, 409, 422].includes(error.status)) throw error;
    told = { cells: [], reason: error.message };
  }
  if (!told.cells?.length) {
    picture = null;
    holder.replaceChildren(h('p', { className: 'quiet' }, model.classes.length < 2 ? 'The map begins with the second class.' : told.reason || 'There is no map of this model.'));
    note.textContent = '';
    return;
  }
  await placeQuery(told.hash);
  labels = [];
  const names = told.cells.map((cell) => cell.class);
  picture = svg('svg', { class: 'map', tabindex: 0, role: 'group', 'aria-label': `Map of ${names.length} classes. Arrow keys move it, plus and minus zoom, zero shows all.` },
    ...told.cells.flatMap(drawCell), ...told.cells.map(drawLabel), ...drawQuery());
  holder.replaceChildren(picture);
  picture.addEventListener('keydown', keys);
  picture.addEventListener('wheel', (event) => { event.preventDefault(); zoom(Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY * 0.002))), place(event)); }, { passive: false });
  pointers(picture);
  note.textContent = `${model.query && drawQuery().length ? `The ring is the photo asked last (${model.query.said}). ` : ''}Each cell holds what is nearest to its class. The model sees many more directions than these two, so a point near a border may belong to another class. Drag or scroll, or use the arrow keys, + and −.`;
  all();
}

export function begin() {
  $('#map-in').addEventListener('click', () => zoom(0.6));
  $('#map-out').addEventListener('click', () => zoom(1 / 0.6));
  $('#map-all').addEventListener('click', all);
  new ResizeObserver(apply).observe($('#map'));
}
