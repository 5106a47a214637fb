// Keep and move: the model as a file, merging, what is in it and what was done to it.

import { get, hasToken, leave as signOut, multipart, send, write } from './api.js';
import { $, bytes, count, h, past, question, save, show, toast, when } from './dom.js';
import { base, model, refresh, samples } from './model.js';
import * as store from './store.js';

async function download() {
  const button = $('#download');
  button.disabled = true;
  try {
    const response = await send('GET', `${base()}/file`);
    save(await response.blob(), `${model.name}.ivoro`);
    toast('The model is in your downloads.');
  } catch (error) { toast(error.message); }
  button.disabled = false;
}

async function submitted(event, act) {
  event.preventDefault();
  const form = event.target;
  const place = $('.error', form);
  const button = $('button', form);
  place.textContent = '';
  button.disabled = true;
  try {
    if (await act() !== false) form.reset();
    await refresh();
    await enter();
  } catch (error) { place.textContent = error.message; }
  button.disabled = false;
}

async function merge() {
  const [file] = $('#merge-model').files;
  const [ancestor] = $('#merge-ancestor').files;
  const before = model.classes.length;
  const parts = [{ field: 'model', name: file.name, data: file }];
  if (ancestor) parts.push({ field: 'ancestor', name: ancestor.name, data: ancestor });
  const { body, type } = multipart(parts);
  await write('POST', `${base()}/merge`, undefined, { body, type });
  await refresh();
  toast(`Merged. ${count(model.classes.length, 'class', 'classes')} now, ${before} before.`);
}

async function replace() {
  const [file] = $('#upload-model').files;
  return question({
    title: 'Replace the model?', text: `${file.name} takes the place of ${model.name} with its ${count(model.classes.length, 'class', 'classes')} and ${count(samples(), 'photo')}.`, yes: 'Replace', danger: true,
    act: async () => {
      await write('PUT', `${base()}/file`, undefined, { body: file, type: 'application/octet-stream', ifMatch: model.hash && `"${model.hash.replaceAll('"', '')}"` });
      toast('Replaced.');
    },
  }).then((answer) => Boolean(answer));
}

async function seal() {
  $('#seal-error').textContent = '';
  await question({
    title: 'Seal all classes?', text: 'The file becomes small. Photos can no longer be added to these classes or taken out of them. New classes can still be taught. Download the model first if you may want to go back.', yes: 'Seal', danger: true,
    act: async () => { await write('POST', `${base()}/seal`, { classes: null, bits: 8 }); await refresh(); await enter(); toast('Sealed.'); },
  });
}

// ---- journal and audit

const RIGHT = ['Photos', 'Numbers', 'Size'];

function table(head, rows) {
  return h('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': head.join(', ') }, h('table', {}, h('thead', {}, h('tr', {}, head.map((cell) => h('th', { scope: 'col', className: RIGHT.includes(cell) ? 'numbers' : '' }, cell)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell, index) => h('td', { className: RIGHT.includes(head[index]) ? 'numbers' : index === 0 ? 'first' : '' }, typeof cell === 'number' ? cell.toLocaleString('en') : cell)))))));
}

async function drawJournal() {
  const told = await get(`${base()}/journal`);
  const entries = (Array.isArray(told) ? told : told.entries ?? []).slice().reverse().sort((a, b) => (b.when ?? b.time) - (a.when ?? a.time));
  if (!entries.length) { $('#journal').replaceChildren(h('p', { className: 'quiet' }, 'Empty. Every lesson and every change will stand here: when, who and what; never a photo.')); return; }
  $('#journal').replaceChildren(table(['When', 'Who', 'What', 'Photos', 'Classes'], entries.slice(0, 200).map((one) => {
    const names = (one.classes ?? []).slice(0, 5).join(', ') + (one.more || (one.classes ?? []).length > 5 ? ' …' : '');
    return [when(one.when ?? one.time), one.token ?? one.who ?? '–', past(one.verb), one.samples ?? '', one.into ? `${names} → ${one.into}` : names];
  })));
}

async function drawAudit() {
  const told = await get(`${base()}/audit`);
  const lines = Array.isArray(told) ? told : told.lines ?? told.kept ?? [];
  const lists = [['Not in it', told.not_kept ?? []], ['What the server keeps beside it', told.server ?? []]].filter(([, list]) => list.length);
  // one line for all classes: whoever wants each saves the list
  const sums = new Map();
  for (const { owner, what, numbers, bytes: size } of lines) {
    const whose = owner.startsWith('class ') ? 'all classes' : owner;
    const row = sums.get(`${whose} ${what}`) ?? { whose, what, numbers: 0, size: 0 };
    row.numbers += numbers;
    row.size += size;
    sums.set(`${whose} ${what}`, row);
  }
  const all = lines.reduce((sum, one) => sum + one.bytes, 0);
  $('#audit').replaceChildren(...[
    lines.length ? table(['Whose', 'What', 'Numbers', 'Size'], [...sums.values()].map((row) => [row.whose, row.what, row.numbers, bytes(row.size)])) : h('p', { className: 'quiet' }, 'Nothing yet.'),
    lines.length ? h('p', { className: 'quiet' }, `${bytes(all)} in all. However many photos it learns, this does not grow.`) : '',
    ...lists.map(([title, list]) => h('details', {}, h('summary', {}, title), h('ul', { className: 'plain-list' }, list.map((line) => h('li', {}, line))))),
    h('div', { className: 'row' }, h('button', { type: 'button', on: { click: () => save(new Blob([`${JSON.stringify(told, null, 2)}\n`], { type: 'application/json' }), `${model.name}-audit.json`) } }, 'Save the whole list'))]);
}

async function drawBrowser() {
  const records = await store.ofModel(model.name);
  $('#browser-text').textContent = records.length ? `Keeps receipts and small pictures of ${count(records.length, 'photo')}. Without them the model stays as it is, but single photos can’t be taken out any more.` : 'Keeps receipts and small pictures of photos that you teach here. There are none now.';
  $('#browser-clear').disabled = !records.length && !hasToken();
}

async function clearBrowser() {
  await question({ title: 'Clear this browser?', text: 'Receipts, small pictures and the token are dropped. The model stays as it is.', yes: 'Clear', danger: true, act: async () => {
    await store.clear();
    if (hasToken()) signOut();
    await enter();
  } });
}

export async function enter() {
  const size = model.details.bytes;
  $('#download-text').textContent = `${model.name}.ivoro: ${count(model.classes.length, 'class', 'classes')}, ${count(samples(), 'photo')}${size ? `, ${bytes(size)}` : ''}. The program, Python and other servers read it.`;
  show($('#seal').closest('.card'), !$('#seal').closest('.card').hidden && model.classes.some((one) => !one.sealed));
  await Promise.all([
    drawJournal().catch((error) => { $('#journal').replaceChildren(h('p', { className: 'error' }, error.message)); }),
    drawAudit().catch((error) => { $('#audit').replaceChildren(h('p', { className: 'error' }, error.message)); }),
    drawBrowser()]);
}

export function begin() {
  $('#download').addEventListener('click', download);
  $('#merge-form').addEventListener('submit', (event) => submitted(event, merge));
  $('#upload-form').addEventListener('submit', (event) => submitted(event, replace));
  $('#seal').addEventListener('click', seal);
  $('#browser-clear').addEventListener('click', clearBrowser);
}
