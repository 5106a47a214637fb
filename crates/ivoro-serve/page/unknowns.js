// Unknowns: queries that were rejected and wait for a name. The server keeps their features for a while, never the photo.

import { get, write } from './api.js';
import { $, count, h, say, show, swatch, toast, when } from './dom.js';
import { base, may, model, refresh } from './model.js';
import { thumbnailOf, tile } from './photos.js';
import * as store from './store.js';
import { remember } from './undo.js';

// Photos asked in this tab: only here can they be shown beside their entry.
const photos = new Map();
export function remembered(id, photo) {
  photos.set(String(id), photo);
  load().catch(() => {});
}

async function load() {
  if (!model.name) return;
  let list = [];
  try {
    const told = await get(`${base()}/unknowns`);
    list = Array.isArray(told) ? told : told.unknowns ?? [];
  } catch (error) {
    if (![403, 404, 409].includes(error.status)) throw error;
  }
  const badge = $('#unknown-count');
  badge.textContent = list.length;
  show(badge, list.length > 0);
  draw(list);
}

function draw(list) {
  const place = $('#unknown-list');
  if (list.length) {
    place.replaceChildren(h('p', { className: 'quiet' }, `${count(list.length, 'query', 'queries')} without a name. The server keeps numbers of them, no photos, and drops them after a while.`), ...list.map(entry));
    return;
  }
  place.replaceChildren(h('div', { className: 'card empty' }, ...(model.details.keep_unknowns
    ? [h('h3', {}, 'Nothing waits'), h('p', {}, 'When it answers “unknown”, the query waits here for a while. Give it a name, and it is learned.')]
    : [h('h3', {}, 'This list is off'), h('p', {}, 'Unknown queries are not kept, so that nothing is stored unasked. To gather them here, start the server so:'), h('pre', {}, h('code', {}, `ivoro serve ${model.name}.ivoro --keep-unknowns`)), h('p', { className: 'quiet' }, 'You can still teach an unknown photo at once, on its answer in Ask.')])));
}

function entry(one) {
  const photo = photos.get(String(one.id));
  const name = h('input', { maxLength: 200, placeholder: 'What is it?', 'aria-label': 'What is it?', required: true });
  name.setAttribute('list', 'class-names');
  const error = h('p', { className: 'error', role: 'alert' });
  const nearest = one.top?.[0]?.class ?? one.nearest?.[0]?.class ?? one.nearest ?? one.class;
  const since = one.time ?? one.asked_at ?? one.when;
  const done = async (act) => { try { await act(); await refresh(); await load(); } catch (problem) { error.textContent = problem.message; } };
  const teach = async () => {
    const as = name.value.trim();
    const told = await write('POST', `${base()}/unknowns/${encodeURIComponent(one.id)}`, { class: as });
    const receipt = told.taught?.[0]?.receipt ?? told.receipt;
    if (receipt) {
      const record = { model: model.name, class: as, receipt, thumb: photo ? await thumbnailOf(photo) : null, name: photo?.name ?? 'unknown query', time: Date.now() / 1000, hash: told.hash };
      await store.add([record]);
      remember({ steps: 1, before: told.hash_before, after: told.hash, revert: () => store.remove([record.id]) });
    }
    toast(`Learned as ${as}.`);
  };
  const buttons = may('teach') ? h('form', { className: 'row', autocomplete: 'off', on: { submit: (event) => { event.preventDefault(); done(teach); } } }, name, h('button', { className: 'primary' }, 'Teach'),
    h('button', { type: 'button', className: 'plain', on: { click: () => done(async () => { await write('DELETE', `${base()}/unknowns/${encodeURIComponent(one.id)}`); say('Dropped.'); }) } }, 'Drop it')) : '';
  return h('article', { className: 'card query small-picture' }, h('div', { className: 'picture' }, photo ? tile(photo, 88) : h('span', { className: 'tile' }, h('span', { className: 'no-picture' }, '?'))),
    h('div', { className: 'stack' }, h('p', {}, h('strong', {}, photo?.name ?? 'A query from elsewhere'), since ? h('span', { className: 'quiet' }, ` · ${when(since)}`) : ''),
      nearest ? h('p', { className: 'quiet' }, 'Nearest: ', swatch(nearest), ` ${nearest}`) : '', buttons, error));
}

export const enter = load;

export function begin() {
  document.addEventListener('model-changed', () => load().catch(() => {}));
}
