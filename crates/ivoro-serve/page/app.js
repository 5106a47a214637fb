// The frame of the page: which model, which section, drops and pastes anywhere, and news of the model.

import { get, listen, send } from './api.js';
import * as ask from './ask.js';
import * as correct from './correct.js';
import { $, $$, h, show, toast } from './dom.js';
import * as keep from './keep.js';
import * as map from './map.js';
import { base, may, model, refresh } from './model.js';
import * as quality from './quality.js';
import * as teach from './teach.js';
import * as unknowns from './unknowns.js';

const SECTIONS = { teach, ask, correct, unknowns, quality, keep };
const NEEDS_TEACH = ['teach', 'correct'];
const NEW = '\u0000new';

let current = null;

// ---- sections

function wanted() {
  const name = location.hash.slice(1);
  if (SECTIONS[name] && (may('teach') || !NEEDS_TEACH.includes(name))) return name;
  return may('teach') && !model.classes.length ? 'teach' : 'ask';
}

async function enter(focus) {
  if (!model.name) return;
  const name = wanted();
  if (current !== name) SECTIONS[current]?.leave?.();
  const fresh = current !== name;
  current = name;
  show($('#nothing'), false);
  for (const section of Object.keys(SECTIONS)) show($(`#${section}`), section === name);
  for (const link of $$('nav a')) {
    if (link.hash === `#${name}`) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  const heading = $(`#${name}-h`);
  document.title = `${heading.textContent} · ${model.name} · iVoro`;
  if (fresh) scrollTo(0, 0);
  if (focus) heading.focus({ preventScroll: true });
  try {
    await SECTIONS[name].enter?.();
  } catch (error) { toast(error.message); }
}

// ---- models

async function models() {
  const list = await get('api/v1/models');
  const names = (Array.isArray(list) ? list : list.models).map((one) => one.name);
  const select = $('#model-choice');
  select.replaceChildren(...names.map((name) => h('option', { value: name }, name)));
  return names;
}

async function choose(name) {
  model.name = name;
  model.query = null;
  $('#model-choice').value = name;
  document.dispatchEvent(new Event('model-chosen'));
  await refresh();
  if (may('admin') && model.details.folder !== false) $('#model-choice').append(...($(`#model-choice option[value="${NEW}"]`) ? [] : [h('option', { value: NEW }, 'New model …')]));
  sessionStorage.setItem('ivoro-model', name);
  await teach.loadGrowth();
  await enter(false);
  news();
}

function beginNew() {
  for (const section of Object.keys(SECTIONS)) show($(`#${section}`), false);
  current = null;
  show($('#nothing'), true);
  $('#new-model-name').focus();
}

async function created(event) {
  event.preventDefault();
  const name = $('#new-model-name').value.trim();
  try {
    await send('PUT', `api/v1/models/${encodeURIComponent(name)}`);
    $('#new-model-name').value = '';
    location.hash = '#teach';
    await models();
    await choose(name);
  } catch (error) { toast(error.message); }
}

// ---- news: others may teach the same model

let following = null;
async function news() {
  following?.abort();
  const mine = following = new AbortController();
  for (let pause = 1; following === mine; pause = Math.min(30, pause * 2)) {
    try {
      await listen(`${base()}/events`, (state) => { pause = 1; if (state.hash && state.hash !== model.hash) refresh().catch(() => {}); }, mine.signal);
    } catch (error) {
      if (mine.signal.aborted || [404, 501].includes(error.status)) return;
      // whatever is asked next finds out, and says so
      if (error.name === 'TypeError') refresh().catch(() => {});
    }
    await new Promise((resolve) => { setTimeout(resolve, pause * 1000); });
  }
}

// ---- drops and pastes

function transfers() {
  let depth = 0;
  const mark = (on) => document.body.classList.toggle('dropping', on);
  const files = (event) => [...(event.dataTransfer?.types || [])].includes('Files');
  addEventListener('dragenter', (event) => { if (files(event)) { depth += 1; mark(true); } });
  addEventListener('dragleave', () => { depth = Math.max(0, depth - 1); if (!depth) mark(false); });
  addEventListener('dragover', (event) => { if (files(event)) event.preventDefault(); });
  addEventListener('drop', (event) => {
    depth = 0;
    mark(false);
    if (!files(event)) return;
    event.preventDefault();
    received(event.dataTransfer);
  });
  addEventListener('paste', (event) => {
    if ([...event.clipboardData.items].some((item) => item.kind === 'file')) { event.preventDefault(); received(event.clipboardData); }
  });
}

async function received(transfer) {
  try {
    if (SECTIONS[current]?.receive) await SECTIONS[current].receive(transfer);
    else toast('Photos can be dropped in Teach and in Ask.');
  } catch (error) { toast(`That could not be read: ${error.message}`); }
}

// ---- the beginning

async function begin() {
  for (const section of Object.values(SECTIONS)) section.begin?.();
  map.begin();
  transfers();
  addEventListener('hashchange', () => enter(true));
  document.addEventListener('server-back', () => { if (model.name) refresh().catch(() => {}); });
  document.addEventListener('visibilitychange', () => { if (document.hidden && current === 'teach') teach.leave(); });
  $('#skip').addEventListener('click', (event) => { event.preventDefault(); ($(`#${current}-h`) ?? $('#main-heading')).focus(); });
  $('#new-model-form').addEventListener('submit', created);
  const select = $('#model-choice');
  select.addEventListener('change', () => { if (select.value === NEW) beginNew(); else choose(select.value).catch((error) => toast(error.message)); });
  const names = await models();
  if (!names.length) { $('#state').textContent = 'No model yet'; select.append(h('option', { value: '' }, 'none')); beginNew(); return; }
  const last = sessionStorage.getItem('ivoro-model');
  await choose(names.includes(last) ? last : names[0]);
}

begin().catch((error) => {
  $('#state').textContent = 'Not connected';
  toast(error.message);
});
