// Correct: undo, photos that are in the wrong class, and the classes themselves.

import { write } from './api.js';
import { $, count, h, past, question, save, say, show, swatch, toast, when } from './dom.js';
import { base, knows, may, model, refresh } from './model.js';
import { tile } from './photos.js';
import * as store from './store.js';
import { loadGrowth } from './teach.js';
import { peek, remember, undo } from './undo.js';

const PAGE = 60;
let records = [];
let shown = PAGE;
const picked = new Set();

// ---- undo

async function drawUndo() {
  const told = may('teach') ? await peek() : null;
  $('#undo-button').disabled = !told;
  $('#undo-text').replaceChildren(...(told ? [h('strong', {}, 'Last change: '), describe(told)] : [h('span', { className: 'quiet' }, 'Nothing to undo. Changes can be undone for a quarter of an hour.')]));
}

function describe(told) {
  if (told.text) return told.text;
  if (typeof told.what === 'string' && !told.verb) return told.what;
  const verb = told.verb ?? told.what ?? told.undo ?? 'change';
  const classes = [told.classes ?? told.class ?? []].flat();
  const parts = [past(verb)];
  if (told.samples) parts.push(count(told.samples, 'photo'));
  if (classes.length) parts.push(classes.slice(0, 4).join(', '));
  if (told.into) parts.push(`now ${told.into}`);
  const time = told.time ?? told.when;
  return `${parts.join(' · ')}${time ? ` · ${when(time)}` : ''}`;
}

async function undoLast(own) {
  try {
    await undo({ own });
    toast('Undone.');
    loadGrowth();
  } catch (error) { toast(error.message); }
  await enter();
}

// ---- photos by their receipts

const chosenClass = () => $('#gallery-class').value;

async function drawGallery() {
  records = (await store.ofModel(model.name)).sort((a, b) => b.time - a.time);
  const names = [...new Set(records.map((record) => record.class))].sort((a, b) => a.localeCompare(b));
  const before = chosenClass();
  $('#gallery-class').replaceChildren(h('option', { value: '' }, `all (${records.length})`), ...names.map((name) => h('option', { value: name }, `${name} (${records.filter((record) => record.class === name).length})`)));
  $('#gallery-class').value = names.includes(before) ? before : '';
  for (const id of picked) if (!records.some((record) => record.id === id)) picked.delete(id);
  drawTiles();
}

function drawTiles() {
  const place = $('#gallery');
  if (!records.length) {
    place.replaceChildren(h('p', { className: 'quiet' }, 'None yet. What you teach here appears with a small picture and a receipt. Both stay in this browser. With the receipt a photo can be taken out again, to the last bit.'));
    drawPicked();
    return;
  }
  const list = records.filter((record) => !chosenClass() || record.class === chosenClass());
  place.replaceChildren(h('ul', { className: 'gallery' }, list.slice(0, shown).map(choice)),
    list.length > shown ? h('button', { type: 'button', className: 'plain', on: { click: () => { shown += PAGE; drawTiles(); } } }, `Show more (${list.length - shown})`) : '');
  drawPicked();
}

function choice(record) {
  const box = h('input', { type: 'checkbox', checked: picked.has(record.id), on: { change: () => { if (box.checked) picked.add(record.id); else picked.delete(record.id); drawPicked(); } } });
  return h('li', {}, h('label', { className: 'choice' }, box, tile(record, 72), h('span', { className: 'caption' }, swatch(record.class), h('span', { className: 'clip' }, record.class)), h('span', { className: 'sr' }, record.name)));
}

function drawPicked() {
  show($('#picked'), picked.size > 0);
  $('#picked-text').textContent = picked.size ? `${count(picked.size, 'photo')} selected` : '';
}

const chosen = () => records.filter((record) => picked.has(record.id));
const receiptsOf = (list) => list.map((record) => record.receipt);

async function move(event) {
  event.preventDefault();
  const name = $('#picked-class').value.trim();
  if (!name) { $('#picked-class').focus(); return; }
  const list = chosen().filter((record) => record.class !== name);
  await attempt(async () => {
    if (!list.length) throw new Error(`They are in ${name} already.`);
    const before = list.map((record) => ({ ...record }));
    const classes = [...new Set(list.map((record) => record.class))];
    let hash;
    let start;
    // a class at a time: what came from several can't be undone
    for (const from of classes) {
      const part = list.filter((record) => record.class === from);
      const told = await write('POST', `${base()}/relabel`, { receipts: receiptsOf(part), class: name });
      part.forEach((record, index) => Object.assign(record, { class: name, receipt: told.receipts?.[index] ?? record.receipt, hash: told.hash }));
      await store.put(part);
      hash = told.hash;
      start ??= told.hash_before;
    }
    remember({ steps: classes.length, before: start, after: hash, text: `${count(list.length, 'photo')} moved to ${name}`, revert: () => store.put(before) });
    return `${count(list.length, 'photo')} moved to ${name}.`;
  });
}

async function takeOut() {
  const list = chosen();
  await attempt(async () => {
    const told = await write('POST', `${base()}/retract`, { receipts: receiptsOf(list) });
    await store.remove(list.map((record) => record.id));
    remember({ steps: 1, before: told.hash_before, after: told.hash, text: `${count(list.length, 'photo')} taken out`, revert: () => store.put(list) });
    return `${count(list.length, 'photo')} taken out.`;
  });
}

async function attempt(act) {
  $('#picked-error').textContent = '';
  for (const button of $('#picked').querySelectorAll('button')) button.disabled = true;
  try {
    const text = await act();
    picked.clear();
    $('#picked-class').value = '';
    await refresh();
    await enter();
    toast(text, h('button', { type: 'button', on: { click: () => undoLast(true) } }, 'Undo'));
  } catch (error) {
    $('#picked-error').textContent = error.message;
  }
  for (const button of $('#picked').querySelectorAll('button')) button.disabled = false;
}

// ---- classes

const path = (name) => `${base()}/classes/${encodeURIComponent(name)}`;

function drawClasses() {
  const place = $('#class-table');
  if (!model.classes.length) {
    place.replaceChildren(h('p', { className: 'quiet' }, 'None yet.'));
    return;
  }
  place.replaceChildren(h('ul', { className: 'classes' }, model.classes.map((one) => h('li', {},
    h('span', { className: 'name' }, swatch(one.name), ` ${one.name}`), h('span', { className: 'quiet numbers' }, count(one.samples, 'photo')),
    h('span', { className: 'row tight' },
      button('Rename', one.name, () => rename(one)), button('Move into …', one.name, () => moveInto(one), model.classes.length < 2), button('Forget', one.name, () => forget(one)))))));
}

function button(text, name, act, disabled = false) {
  return h('button', { type: 'button', className: 'small', disabled, 'aria-label': `${text} ${name}`.replace(' …', ''), on: { click: act } }, text);
}

async function rename(one) {
  await question({ title: `Rename ${one.name}`, text: 'Only the name changes.', label: 'New name', value: one.name, yes: 'Rename', act: async (name) => {
    if (name === one.name) return;
    if (knows(name)) throw new Error(`There is a class ${name} already. To join the two, use “Move into”.`);
    await changed(one.name, name, await write('PATCH', path(one.name), { name }), `Now called ${name}.`);
  } });
}

async function moveInto(one) {
  await question({ title: `Move ${one.name} into another class`, text: `All ${count(one.samples, 'photo')} of ${one.name} will count as the other class. ${one.name} is gone then. This can’t be undone.`, label: 'Other class', classes: true, yes: 'Move', act: async (into) => {
    if (into === one.name || !knows(into)) throw new Error('Choose another class that it knows.');
    await changed(one.name, into, await write('PATCH', path(one.name), { into }), `${one.name} is a part of ${into} now.`, false);
  } });
}

async function changed(from, to, told, text, undoable = true) {
  const before = (await store.ofModel(model.name)).filter((record) => record.class === from);
  await store.put(before.map((record) => ({ ...record, class: to })));
  if (undoable) remember({ steps: 1, before: told.hash_before, after: told.hash, text: `${from} renamed to ${to}`, revert: () => store.put(before) });
  await refresh();
  await enter();
  toast(text, ...(undoable ? [h('button', { type: 'button', on: { click: () => undoLast(true) } }, 'Undo')] : []));
}

async function forget(one) {
  await question({
    title: `Forget ${one.name}?`, text: `The model will be as if ${one.name} had never been taught. Its ${count(one.samples, 'photo')} and their receipts in this browser are gone. This can’t be undone.`, yes: 'Forget', danger: true, check: 'Take its name out of the journal too',
    act: async (_, strike) => {
      const told = await forgotten(one.name, strike);
      await store.update(model.name, (record) => (record.class === one.name ? null : undefined));
      await refresh();
      await enter();
      drawReceipt(told, one);
    },
  });
}

// A model that keeps one scatter for all classes forgets one by the receipts of all its photos.
async function forgotten(name, strike) {
  try {
    return await write('DELETE', path(name), { strike });
  } catch (error) {
    const receipts = receiptsOf((await store.ofModel(model.name)).filter((record) => record.class === name));
    if (error.status !== 409 || !receipts.length) throw error;
    return write('DELETE', path(name), { strike, receipts });
  }
}

function drawReceipt(told, one) {
  const facts = { Class: one.name, Photos: told.samples ?? one.samples, 'Model before': told.hash_before, 'Model after': told.hash_after ?? told.hash };
  const heading = h('h3', { tabIndex: -1 }, `${one.name} is forgotten`);
  $('#forget-receipt').replaceChildren(h('div', { className: 'card stack' }, heading,
    h('p', {}, 'This receipt proves it: the hashes of the model file before and after.'),
    h('dl', { className: 'facts' }, Object.entries(facts).flatMap(([name, value]) => [h('dt', {}, name), h('dd', { className: 'numbers' }, String(value ?? '–'))])),
    h('div', { className: 'row' }, h('button', { type: 'button', className: 'primary', on: { click: () => save(new Blob([`${JSON.stringify(told, null, 2)}\n`], { type: 'application/json' }), `forgotten-${one.name.replace(/[^\p{L}\p{N}_-]+/gu, '_')}.json`) } }, 'Save receipt'))));
  heading.focus();
  heading.scrollIntoView({ block: 'nearest' });
  say(heading.textContent);
}

export async function enter() {
  await Promise.all([drawUndo(), drawGallery()]);
}

export function begin() {
  $('#undo-button').addEventListener('click', () => undoLast(false));
  $('#gallery-class').addEventListener('change', () => { shown = PAGE; drawTiles(); });
  $('#picked').addEventListener('submit', move);
  $('#picked-out').addEventListener('click', takeOut);
  $('#picked-none').addEventListener('click', () => { picked.clear(); drawTiles(); });
  document.addEventListener('model-changed', () => { drawClasses(); if (location.hash === '#correct') drawUndo().catch(() => {}); });
  document.addEventListener('model-chosen', () => { picked.clear(); $('#forget-receipt').replaceChildren(); });
}

