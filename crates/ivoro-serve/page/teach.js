// Teach: photos are gathered in a tray, and then learned a few at a time, each asked before it is learned.

import { get, multipart, write } from './api.js';
import { Camera, holdButton, offer } from './camera.js';
import { $, count, h, percent, say, show, svg, swatch } from './dom.js';
import { base, model, refresh, samples } from './model.js';
import { fromFiles, fromTransfer, thumbnailOf, tile } from './photos.js';
import * as store from './store.js';
import { remember, undo } from './undo.js';

const BATCH_PHOTOS = 8;
const BATCH_BYTES = 8e6;
// A model chooses its variant by its first lesson: that one is larger.
const FIRST_TIMES = 4;
const SHOWN = 12;
// With more groups than that no pictures are shown before the lesson.
const MOST_STRIPS = 6;

// Groups of photos that wait. The first holds those without a folder; the field above names it.
let groups = [];
let unread = [];
const loose = () => groups.find((group) => !group.folder) || (groups.unshift({ folder: false, name: '', photos: [] }), groups[0]);

function gather({ photos, others }) {
  unread = others;
  const typed = $('#teach-name').value.trim();
  const folders = new Set(photos.map((photo) => photo.folder).filter(Boolean));
  for (const { file, folder } of photos) {
    const photo = { file, name: file.name };
    if (!folder || (typed && folders.size === 1)) loose().photos.push(photo);
    else {
      let group = groups.find((one) => one.folder && one.name === folder);
      if (!group) groups.push(group = { folder: true, name: folder, photos: [] });
      group.photos.push(photo);
    }
  }
  drawTray();
  if (photos.length) say(`${count(photos.length, 'photo')} ready to teach.`);
  if (others.length) $('#teach-error').textContent = `Left out: ${others.slice(0, 3).map((one) => `${one.name} (${one.reason})`).join(', ')}${others.length > 3 ? ` and ${others.length - 3} more` : ''}.`;
}

const waiting = () => groups.filter((group) => group.photos.length);
const nameOf = (group) => (group.folder ? group.name : $('#teach-name').value).trim();

function drawTray() {
  groups = groups.filter((group) => group.photos.length);
  $('#tray').replaceChildren(...groups.map(drawGroup));
  $('#teach-error').textContent = '';
  drawActions();
}

function drawActions() {
  const photos = waiting().reduce((sum, group) => sum + group.photos.length, 0);
  const classes = new Set(waiting().map(nameOf)).size;
  show($('#teach-actions'), photos > 0 || unread.length > 0);
  show($('#teach-go'), photos > 0);
  $('#teach-go').textContent = `Teach ${count(photos, 'photo')}${classes > 1 ? ` in ${classes} classes` : ''}`;
}

function drawGroup(group) {
  const remove = h('button', { type: 'button', className: 'plain', on: { click: () => { group.photos = []; drawTray(); $('#teach-name').focus(); } } }, 'Put back');
  const total = h('span', { className: 'quiet numbers' }, count(group.photos.length, 'photo'));
  const name = group.folder
    ? h('label', { className: 'grow' }, h('span', { className: 'sr' }, 'Class of these photos'), nameField(group))
    : h('strong', { className: 'grow' }, 'Ready to teach');
  const shown = groups.length > MOST_STRIPS ? 0 : SHOWN;
  const tiles = group.photos.slice(-SHOWN).slice(0, shown).reverse().map((photo) => h('li', {}, h('button', {
    type: 'button', className: 'tile-button', 'aria-label': `Put back ${photo.name}`,
    on: { click: () => { group.photos.splice(group.photos.indexOf(photo), 1); drawTray(); $(waiting().length ? '#teach-go' : '#teach-name').focus(); } },
  }, tile(photo))));
  const more = shown && group.photos.length > SHOWN ? [h('li', { className: 'quiet more' }, `+ ${group.photos.length - SHOWN}`)] : [];
  return h('div', { className: 'group' }, h('div', { className: 'row' }, name, total, remove), shown ? h('ul', { className: 'strip', 'aria-label': 'Photos that wait; press one to put it back' }, ...tiles, ...more) : '');
}

function nameField(group) {
  const input = h('input', { value: group.name, maxLength: 200, on: { input: () => { group.name = input.value; drawActions(); } } });
  input.setAttribute('list', 'class-names');
  return input;
}

// ---- the lesson

// A turn for each class, so that the first photos learned are of all of them.
function interleaved(groups_) {
  const rows = groups_.map((group) => group.photos.map((photo) => ({ photo, name: nameOf(group) })));
  const queue = [];
  for (let turn = 0; rows.some((row) => turn < row.length); turn += 1) {
    for (const row of rows) if (turn < row.length) queue.push(row[turn]);
  }
  return queue;
}

async function nextBatch(queue, skipped, first) {
  const batch = [];
  const times = first ? FIRST_TIMES : 1;
  let size = 0;
  while (queue.length && batch.length < times * BATCH_PHOTOS && (!batch.length || size + queue[0].photo.file.size <= times * BATCH_BYTES)) {
    const item = queue.shift();
    try {
      item.data = await item.photo.file.arrayBuffer();
      size += item.data.byteLength;
      batch.push(item);
    } catch (error) {
      skipped.push({ name: item.photo.name, reason: error.message });
    }
  }
  return batch;
}

// One request. A class stands before the photos that are of it.
async function learn(batch, patience) {
  const parts = [];
  const byName = new Map();
  let before = null;
  for (const item of batch) {
    const own = item.photo.name;
    const name = byName.has(own) ? `${byName.size + 1}-${own}` : own;
    byName.set(name, item);
    if (item.name !== before) parts.push({ field: 'class', text: item.name });
    parts.push({ name, data: item.data, type: item.photo.file.type });
    before = item.name;
  }
  const { body, type } = multipart(parts);
  const reply = await write('POST', `${base()}/samples`, undefined, { body, type, patience });
  for (const told of reply.taught) byName.get(told.name).told = told;
  const learned = batch.filter((item) => item.told);
  return { reply, learned, left: (reply.skipped || []).map((one) => ({ ...one, name: byName.get(one.name)?.photo.name ?? one.name })) };
}

// Where no photo of a request could be read, the server refuses all of it: then each is tried alone.
async function learnAll(batch, patience, each) {
  try {
    await each(await learn(batch, patience));
  } catch (error) {
    if (![413, 422].includes(error.status)) throw error;
    if (batch.length === 1) await each({ learned: [], left: [{ name: batch[0].photo.name, reason: error.message }] });
    else for (const item of batch) await learnAll([item], patience, each);
  }
}

async function keepReceipts(learned, hash) {
  const records = [];
  for (const { photo, name, told } of learned) {
    if (!told?.receipt) continue;
    records.push({ model: model.name, class: told.class ?? name, receipt: told.receipt, thumb: await thumbnailOf(photo), name: photo.name, time: Date.now() / 1000, hash });
  }
  await store.add(records);
  return records.map((record) => record.id);
}

// Learns what `queue` holds and tells `progress` after each request. Also used by the other sections.
export async function lesson(queue, { progress = () => {}, stopped = () => false, patience } = {}) {
  const outcome = { total: queue.length, learned: 0, asked: 0, right: 0, skipped: [], classes: new Set(), steps: 0, ids: [], error: null };
  while (queue.length && !stopped()) {
    const batch = await nextBatch(queue, outcome.skipped, !model.classes.length && !outcome.learned);
    if (!batch.length) continue;
    try {
      await learnAll(batch, patience, async ({ reply, learned, left }) => {
        outcome.skipped.push(...left);
        if (learned.length) {
          outcome.steps += 1;
          outcome.before ??= reply.hash_before;
          outcome.learned += learned.length;
          model.hash = outcome.hash = reply.hash;
          for (const item of learned) { outcome.classes.add(item.name); score(item.told, outcome); }
          outcome.ids.push(...await keepReceipts(learned, reply.hash));
        }
        progress(outcome, learned);
      });
    } catch (error) {
      outcome.error = error;
      queue.unshift(...batch.filter((item) => !item.told));
      break;
    }
  }
  if (outcome.steps) remember({ steps: outcome.steps, before: outcome.before, after: outcome.hash, text: `learned ${count(outcome.learned, 'photo')} of ${[...outcome.classes].slice(0, 4).join(', ')}`, revert: () => store.remove(outcome.ids), receipts: () => receiptsOf(outcome.ids) });
  return outcome;
}

async function receiptsOf(ids) {
  const own = new Set(ids);
  return (await store.ofModel(model.name)).filter((record) => own.has(record.id)).map((record) => record.receipt);
}

// ---- the honest score

const growth = { asked: 0, right: 0, points: [] };

function score(told, outcome) {
  const right = told?.asked?.right;
  if (right === undefined || right === null) return;
  outcome.asked += 1;
  growth.asked += 1;
  if (right) { outcome.right += 1; growth.right += 1; }
  growth.points.push([growth.asked, growth.right / growth.asked]);
  if (growth.points.length > 600) growth.points = growth.points.filter((_, index) => index % 2);
}

export async function loadGrowth() {
  const quality = await get(`${base()}/quality`).catch(() => null);
  growth.asked = quality?.asked ?? 0;
  growth.right = quality?.right ?? 0;
  growth.points = growth.asked ? [[growth.asked, growth.right / growth.asked]] : [];
  drawGrowth();
}

function drawGrowth() {
  const place = $('#growth');
  if (!growth.asked) {
    place.replaceChildren(h('p', { className: 'quiet' }, 'It appears with the second class.'));
    return;
  }
  const last = Math.max(10, growth.asked);
  const from = growth.points.length > 1 ? growth.points[0][0] - 1 : 0;
  const x = (n) => 34 + 258 * ((n - from) / Math.max(1, last - from));
  const y = (share) => 102 - 92 * share;
  const lines = [0, 0.5, 1].flatMap((share) => [
    svg('line', { x1: 34, x2: 292, y1: y(share), y2: y(share), class: 'grid' }),
    svg('text', { x: 28, y: y(share) + 3.5, 'text-anchor': 'end' }, `${share * 100}`),
  ]);
  const path = growth.points.map(([n, share]) => `${x(n).toFixed(1)},${y(share).toFixed(1)}`).join(' ');
  const [n, share] = growth.points.at(-1);
  const sentence = `Right ${growth.right} of ${growth.asked} times: ${percent(growth.right / growth.asked)}`;
  place.replaceChildren(
    h('p', { className: 'big numbers' }, percent(growth.right / growth.asked)),
    h('p', { className: 'quiet small numbers' }, `right ${growth.right} of ${growth.asked} times`),
    svg('svg', { viewBox: '0 0 300 112', class: 'chart', role: 'img', 'aria-label': sentence }, ...lines,
      svg('polyline', { points: path, class: 'line' }), svg('circle', { cx: x(n), cy: y(share), r: 3.5, class: 'dot' })),
  );
}

// ---- what is shown while it learns, and after

const MARKS = { right: ['✓', 'right'], wrong: ['✕', 'wrong'], fresh: ['+', 'new'] };

function mark({ photo, name, told }) {
  const right = told?.asked?.right;
  const kind = right === true ? 'right' : right === false ? 'wrong' : 'fresh';
  const said = kind === 'wrong' ? `${name}; it said ${told.asked.unknown ? 'unknown' : told.asked.class}` : kind === 'right' ? `${name}, as it said` : `${name}, not asked`;
  const holder = tile(photo);
  holder.classList.add(kind);
  holder.append(h('span', { className: 'mark', 'aria-hidden': 'true' }, MARKS[kind][0]), h('span', { className: 'sr' }, said));
  holder.title = said;
  return h('li', {}, holder);
}

function drawProgress(outcome, learned) {
  const done = outcome.learned + outcome.skipped.length;
  $('#lesson-bar').value = done / outcome.total;
  const scored = outcome.asked ? ` · right before learning: ${outcome.right} of ${outcome.asked}` : '';
  $('#lesson-count').textContent = `${done} of ${count(outcome.total, 'photo')}${scored}`;
  const strip = $('#lesson-strip');
  strip.prepend(...learned.map(mark).reverse());
  while (strip.children.length > SHOWN) strip.lastChild.remove();
  drawGrowth();
}

// Leaving in the middle of a lesson is asked about.
const warn = (event) => event.preventDefault();

async function teach(event) {
  event.preventDefault();
  const chosen = waiting();
  const unnamed = chosen.find((group) => !nameOf(group));
  if (!chosen.length) { $('#teach-files-button').focus(); return; }
  if (unnamed) {
    $('#teach-error').textContent = 'Say first what is on the photos.';
    if (!unnamed.folder) $('#teach-name').focus();
    return;
  }
  const queue = interleaved(chosen);
  const stop = new AbortController();
  camera.close();
  show($('#teach-form'), false);
  show($('#lesson-done'), false);
  show($('#lesson'), true);
  $('#lesson-h').textContent = `Learning ${[...new Set(chosen.map(nameOf))].slice(0, 3).join(', ')}${chosen.length > 3 ? ' …' : ''}`;
  $('#lesson-bar').value = 0;
  $('#lesson-count').textContent = `0 of ${count(queue.length, 'photo')}`;
  $('#lesson-strip').replaceChildren();
  $('#lesson-stop').onclick = () => stop.abort();
  $('#lesson-stop').focus();
  addEventListener('beforeunload', warn);
  say(`Learning ${count(queue.length, 'photo')}.`);
  const outcome = await lesson(queue, { progress: drawProgress, stopped: () => stop.signal.aborted, patience: stop.signal });
  removeEventListener('beforeunload', warn);
  const rest = new Set(queue.map((item) => item.photo));
  for (const group of groups) group.photos = group.photos.filter((photo) => rest.has(photo));
  unread = [];
  if (!rest.size) $('#teach-name').value = '';
  drawTray();
  show($('#teach-form'), true);
  show($('#lesson'), false);
  await refresh();
  drawDone(outcome, queue.length);
}

function drawDone(outcome, rest) {
  const place = $('#lesson-done');
  const names = [...outcome.classes];
  const heading = h('h3', { tabIndex: -1 }, outcome.learned ? `Learned ${count(outcome.learned, 'photo')} of ${names.length <= 3 ? names.join(', ') : `${names.length} classes`}` : 'Nothing was learned');
  const parts = [heading];
  if (outcome.asked) parts.push(h('p', {}, `Before it learned them, it was right ${outcome.right} of ${outcome.asked} times.`));
  else if (outcome.learned && model.classes.length < 2) parts.push(h('p', {}, 'Now teach a second class. Then it can tell them apart.'));
  if (outcome.error && outcome.error.name !== 'AbortError') parts.push(h('p', { className: 'error' }, outcome.error.message));
  if (rest) parts.push(h('p', {}, `${count(rest, 'photo')} still ${rest === 1 ? 'waits' : 'wait'} above.`));
  if (outcome.skipped.length) {
    parts.push(h('details', { open: outcome.skipped.length <= 3 }, h('summary', {}, `${count(outcome.skipped.length, 'photo')} left out`),
      h('ul', { className: 'plain-list' }, outcome.skipped.slice(0, 50).map((one) => h('li', {}, h('strong', {}, one.name), ` – ${one.reason.replace(`${one.name}: `, '')}`)))));
  }
  const buttons = [];
  if (outcome.steps) {
    const back = h('button', { type: 'button', on: { click: async () => {
      back.disabled = true;
      try {
        await undo({ own: true });
        await loadGrowth();
        place.replaceChildren(h('p', { role: 'status' }, `Undone. ${count(outcome.learned, 'photo')} taken out again.`));
      } catch (error) { parts.at(-1).append(h('p', { className: 'error', role: 'alert' }, error.message)); }
    } } }, 'Undo');
    buttons.push(back);
  }
  if (model.classes.length > 1) buttons.push(h('a', { className: 'button', href: '#ask' }, 'Ask it something'));
  if (buttons.length) parts.push(h('div', { className: 'row' }, ...buttons));
  place.replaceChildren(...parts);
  show(place, true);
  heading.focus({ preventScroll: true });
  say(heading.textContent);
}

// ---- what it knows

function drawKnown() {
  const place = $('#known');
  if (!model.classes.length) {
    place.replaceChildren(h('p', { className: 'quiet' }, 'Nothing yet. Start with two things to tell apart, 5 to 20 photos each.'));
    return;
  }
  place.replaceChildren(h('ul', { className: 'known', tabIndex: model.classes.length > 8 ? 0 : -1, 'aria-label': 'Classes' }, model.classes.map((one) => h('li', {},
    swatch(one.name), h('span', { className: 'name' }, one.name), h('span', { className: 'quiet numbers' }, one.samples.toLocaleString('en')),
    h('button', { type: 'button', className: 'plain small', 'aria-label': one.sealed ? `${one.name} is sealed` : `Add photos of ${one.name}`, disabled: one.sealed, on: { click: () => more(one.name) } }, one.sealed ? 'sealed' : 'Add')))),
  h('p', { className: 'quiet small numbers' }, `${count(model.classes.length, 'class', 'classes')}, ${count(samples(), 'photo')}`));
}

export function more(name) {
  $('#teach-name').value = name;
  location.hash = '#teach';
  drawActions();
  setTimeout(() => { $('#teach-name').focus(); $('#teach-form').scrollIntoView({ block: 'nearest' }); });
}

// ---- the camera, drops, keys

let camera;
let shots = 0;
async function take() {
  const blob = await camera.frame();
  if (!blob) return;
  shots += 1;
  loose().photos.push({ file: new File([blob], `camera-${String(shots).padStart(3, '0')}.jpg`, { type: 'image/jpeg' }), name: `camera-${String(shots).padStart(3, '0')}.jpg` });
  drawTray();
}

export async function receive(transfer) {
  gather(await fromTransfer(transfer));
}

export function leave() { camera.close(); }

export function begin() {
  const files = async (list) => gather(await fromFiles(list));
  camera = new Camera($('#teach-camera'), { controls: [holdButton('Hold to take photos', take)], taken: files });
  camera.closed = () => show($('#teach-drop'), true);
  $('#teach-form').addEventListener('submit', teach);
  for (const kind of ['files', 'folder']) {
    const input = $(`#teach-${kind}`);
    $(`#teach-${kind}-button`).addEventListener('click', () => input.click());
    input.addEventListener('change', async () => { await files(input.files); input.value = ''; });
  }
  $('#teach-camera-button').addEventListener('click', async () => { if (await camera.start()) { show($('#teach-drop'), false); $('.hold', camera.holder).focus(); } });
  offer($('#teach-camera-button'), files);
  $('#teach-clear').addEventListener('click', () => { groups = []; unread = []; drawTray(); $('#teach-name').focus(); });
  $('#teach-name').addEventListener('input', () => { $('#teach-error').textContent = ''; drawActions(); });
  document.addEventListener('model-changed', drawKnown);
}
