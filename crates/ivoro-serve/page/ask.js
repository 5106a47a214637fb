// Ask: photos and the live camera, and a card for each answer: what, how sure, and why.

import { multipart, write } from './api.js';
import { Camera, offer } from './camera.js';
import { $, bar, count, h, percent, say, show, swatch, toast } from './dom.js';
import { base, may, model, refresh } from './model.js';
import { fromFiles, fromTransfer, tile } from './photos.js';
import { lesson, loadGrowth } from './teach.js';
import { undo } from './undo.js';
import { remembered } from './unknowns.js';

const MOST_CARDS = 60;
const LIVE_PAUSE = 250;

export async function ask(items, { keep = false, signal, once = false } = {}) {
  const { body, type } = multipart(items);
  const query = `top=3&map=true${keep ? '&keep_unknown=true' : ''}`;
  return write('POST', `${base()}/ask?${query}`, undefined, { body, type, key: false, signal, once });
}

// ---- one answer

const usualOf = (answer) => answer.top?.[0]?.usual;

function why(answer) {
  const [first, second] = answer.top;
  const lines = [];
  const times = answer.strangeness;
  if (answer.unknown) lines.push(`It is like nothing that was taught. Nearest would be ${first.class}.`);
  else if (second && first.probability !== null && first.probability < 0.7) lines.push(`${first.class} and ${second.class} are nearly as near.`);
  else if (second) lines.push(`${first.class} is nearest, then ${answer.top.slice(1).map((one) => one.class).join(' and ')}.`);
  if (times !== null && times !== undefined) lines.push(`It lies ${times.toFixed(times < 10 ? 2 : 0)} times as far from ${first.class} as its photos usually do.`);
  else if (usualOf(answer)) lines.push(`Its distance to ${first.class} is ${first.distance.toPrecision(3)}; usual there is ${usualOf(answer).toPrecision(3)}.`);
  return lines.join(' ');
}

function gauge(answer) {
  const times = answer.strangeness;
  if (times === null || times === undefined) return '';
  const limit = answer.threshold ?? model.details.threshold;
  const end = Math.max(2.2, times * 1.1, (limit || 0) * 1.25);
  const at = (value) => Math.max(0, Math.min(1, value / end));
  const needle = h('span', { className: answer.unknown ? 'needle far' : 'needle' });
  needle.style.setProperty('--at', at(times));
  const usual = h('span', { className: 'tick' }, 'usual');
  usual.style.setProperty('--at', at(1));
  const marks = [usual];
  if (limit) {
    const border = h('span', { className: at(limit) > 0.55 ? 'tick border back' : 'tick border' }, at(limit) > 0.55 ? 'unknown beyond' : 'unknown from here');
    border.style.setProperty('--at', at(limit));
    marks.push(border);
  }
  return h('div', { className: 'gauge', role: 'img', 'aria-label': `Strangeness ${times.toFixed(2)}; 1 is usual${limit ? `, unknown above ${limit.toFixed(2)}` : ''}` }, ...marks, needle);
}

function row(candidate, unknown) {
  const share = candidate.probability;
  return h('li', { className: unknown ? 'faint' : '' }, swatch(candidate.class), h('span', { className: 'name' }, candidate.class), bar(share ?? 0),
    h('span', { className: 'numbers' }, share === null || share === undefined ? candidate.distance.toPrecision(3) : percent(share)));
}

export function headline(answer) {
  if (answer.unknown) return 'Unknown';
  return answer.top[0].class;
}

export function sentence(answer) {
  if (answer.unknown) return 'Unknown.';
  const share = answer.top[0].probability;
  return share === null || share === undefined ? `${answer.top[0].class}.` : `${answer.top[0].class}, ${percent(share)}.`;
}

export function drawAnswer(place, answer) {
  const first = answer.top[0];
  const sure = !answer.unknown && first.probability !== null && first.probability !== undefined ? h('span', { className: 'quiet numbers' }, percent(first.probability)) : '';
  place.classList.toggle('is-unknown', Boolean(answer.unknown));
  place.replaceChildren(
    h('h3', { className: 'verdict' }, headline(answer), ' ', sure),
    h('ol', { className: 'top' }, answer.top.slice(0, 3).map((one) => row(one, answer.unknown))),
    gauge(answer),
    h('p', { className: 'quiet' }, why(answer)),
  );
}

// ---- a card: the photo, its answer, and what one may do with it

function card(photo) {
  const answer = h('div', { className: 'answer', 'aria-busy': 'true' }, h('h3', { className: 'verdict quiet' }, 'Looking …'));
  const actions = h('div', { className: 'stack' });
  const element = h('article', { className: 'card query', 'aria-label': `Answer for ${photo.name}` }, h('div', { className: 'picture' }, tile(photo, 132), h('p', { className: 'quiet small clip' }, photo.name)), h('div', { className: 'stack' }, answer, actions));
  return { element, answer, actions, photo };
}

function settle(card_, answer, hash) {
  card_.answer.removeAttribute('aria-busy');
  drawAnswer(card_.answer, answer);
  if (answer.point) {
    model.query = { point: answer.point, file: card_.photo.file, name: card_.photo.name, said: headline(answer), hash };
  }
  const id = answer.unknown_id ?? answer.id;
  if (id !== undefined && answer.unknown) remembered(id, card_.photo);
  card_.actions.replaceChildren(actionsFor(card_, answer));
}

function actionsFor(card_, answer) {
  const links = answer.point ? [h('a', { className: 'button plain', href: '#quality', on: { click: () => { model.showMap = true; } } }, 'See it on the map')] : [];
  if (!may('teach')) return h('div', { className: 'row' }, ...links);
  const name = h('input', { maxLength: 200, placeholder: answer.unknown ? 'What is it?' : 'It is something else', 'aria-label': answer.unknown ? 'What is it?' : 'What it is instead' });
  name.setAttribute('list', 'class-names');
  const error = h('p', { className: 'error', role: 'alert' });
  const teachAs = async (as) => {
    if (!as) { name.focus(); return; }
    const outcome = await lesson([{ photo: card_.photo, name: as }]);
    if (!outcome.learned) {
      error.textContent = outcome.error?.message || outcome.skipped[0]?.reason || 'It was not learned.';
      return;
    }
    await refresh();
    loadGrowth();
    learned(card_, as);
  };
  const form = h('form', { className: 'row', autocomplete: 'off', on: { submit: (event) => { event.preventDefault(); teachAs(name.value.trim()); } } }, name, h('button', {}, 'Teach it so'));
  if (!answer.unknown) form.prepend(h('button', { type: 'button', className: 'good', on: { click: () => teachAs(answer.top[0].class) } }, 'Right, learn it'));
  form.append(...links);
  return h('div', { className: 'stack' }, form, error);
}

function learned(card_, as) {
  const back = h('button', { type: 'button', className: 'plain', on: { click: async () => {
    try {
      await undo({ own: true });
      loadGrowth();
      card_.actions.replaceChildren(h('p', {}, 'Undone.'));
    } catch (error) { toast(error.message); }
  } } }, 'Undo');
  const text = h('p', { tabIndex: -1 }, h('strong', {}, `Learned as ${as}.`));
  card_.actions.replaceChildren(h('div', { className: 'row' }, text, back));
  text.focus();
  say(`Learned as ${as}.`);
}

async function askAll({ photos, others }) {
  const place = $('#answers');
  if (others.length) toast(`Left out: ${others.map((one) => one.name).slice(0, 3).join(', ')} – not a photo.`);
  if (!photos.length) return;
  const cards = photos.slice(0, MOST_CARDS).map(({ file }) => card({ file, name: file.name }));
  place.prepend(...cards.map((one) => one.element));
  while (place.children.length > MOST_CARDS) place.lastChild.remove();
  if (photos.length > MOST_CARDS) toast(`The first ${MOST_CARDS} of ${photos.length} photos are asked.`);
  if (cards.length > 1) say(`Asking about ${count(cards.length, 'photo')}.`);
  place.scrollIntoView({ block: 'nearest', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
  for (const one of cards) await askOne(one);
}

async function askOne(one) {
  try {
    const data = await one.photo.file.arrayBuffer();
    const reply = await ask([{ name: one.photo.name, data, type: one.photo.file.type }], { keep: Boolean(model.details.keep_unknowns) && may('teach') });
    const answer = reply.answers?.[0];
    if (!answer) throw new Error(reply.skipped?.[0]?.reason || 'no answer');
    settle(one, answer, reply.hash);
    say(`${one.photo.name}: ${sentence(answer)}`);
  } catch (error) {
    one.answer.removeAttribute('aria-busy');
    one.answer.replaceChildren(h('h3', { className: 'verdict' }, 'No answer'), h('p', { className: 'error', role: 'alert' }, error.message));
  }
}

// ---- live

let camera;
let live = null;

async function liveLoop() {
  const box = h('div', { className: 'answer live' }, h('h3', { className: 'verdict quiet' }, 'Looking …'));
  camera.holder.append(box);
  const session = live = new AbortController();
  let before = '';
  while (live === session && camera.running) {
    const frame = document.hidden ? null : await camera.frame();
    if (frame) {
      try {
        const reply = await ask([{ name: 'live.jpg', data: frame, type: 'image/jpeg' }], { signal: session.signal });
        if (live !== session) return;
        const answer = reply.answers?.[0];
        if (answer) {
          drawAnswer(box, answer);
          if (headline(answer) !== before) say(sentence(answer));
          before = headline(answer);
          if (answer.point) model.query = { point: answer.point, file: frame, name: 'camera.jpg', said: headline(answer), hash: reply.hash };
        }
      } catch (error) {
        if (session.signal.aborted) return;
        box.replaceChildren(h('p', { className: 'error' }, error.message));
        return;
      }
    }
    await new Promise((resolve) => { setTimeout(resolve, LIVE_PAUSE); });
  }
}

let shots = 0;
async function keepFrame() {
  const frame = await camera.frame();
  if (!frame) return;
  shots += 1;
  askAll({ photos: [{ file: new File([frame], `camera-${shots}.jpg`, { type: 'image/jpeg' }) }], others: [] });
}

export async function receive(transfer) { await askAll(await fromTransfer(transfer)); }

export function leave() { camera.close(); }

function draw() {
  const empty = !model.classes.length;
  show($('#ask-empty'), empty);
  show($('#ask-body'), !empty);
  if (empty) {
    $('#ask-empty').replaceChildren(h('h3', {}, 'It knows nothing yet'), h('p', {}, may('teach') ? 'Teach it two things first, with 5 to 20 photos each. Then ask.' : 'Someone has to teach it first.'),
      ...(may('teach') ? [h('p', {}, h('a', { className: 'button primary', href: '#teach' }, 'Teach'))] : []));
  }
}

export function begin() {
  const input = $('#ask-files');
  const files = async (list) => askAll(await fromFiles(list));
  camera = new Camera($('#ask-camera'), { controls: [h('button', { type: 'button', on: { click: keepFrame } }, 'Keep this answer')], taken: files });
  camera.closed = () => { live?.abort(); live = null; show($('#ask-drop'), true); };
  $('#ask-files-button').addEventListener('click', () => input.click());
  input.addEventListener('change', async () => { await files(input.files); input.value = ''; });
  $('#ask-camera-button').addEventListener('click', async () => { if (await camera.start()) { show($('#ask-drop'), false); $('button', camera.holder).focus(); liveLoop(); } });
  offer($('#ask-camera-button'), files);
  document.addEventListener('model-changed', draw);
  document.addEventListener('model-chosen', () => { $('#answers').replaceChildren(); });
}
