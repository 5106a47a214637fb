// How good is it: counts and accuracy of each class, what is taken for what, and whether probabilities hold.

import { get } from './api.js';
import { $, bar, count, h, percent, show, svg, swatch } from './dom.js';
import { base, may, model, refresh, samples } from './model.js';
import { drawMap } from './map.js';
import { more } from './teach.js';

const MATRIX_MOST = 12;

function tileOf(value, label, note = '') {
  return h('div', { className: 'card tile-number' }, h('p', { className: 'quiet small' }, label), h('p', { className: 'big numbers' }, value), h('p', { className: 'quiet small' }, note));
}

// Both an object of classes and a list are read.
function perClass(quality) {
  const told = quality.per_class ?? quality.classes ?? [];
  const list = Array.isArray(told) ? told : Object.entries(told).map(([name, one]) => ({ class: name, ...one }));
  return new Map(list.map((one) => [one.class ?? one.name, one]));
}

function drawTiles(quality) {
  const [low, high] = quality.interval ?? [];
  const needs = quality.needs_photos ?? [];
  $('#quality-tiles').replaceChildren(
    tileOf(quality.asked ? percent(quality.right / quality.asked) : '–', 'Right, asked before learned', quality.asked ? `${quality.right} of ${count(quality.asked, 'photo')}${low !== undefined ? `; likely ${percent(low)} to ${percent(high)}` : ''}` : 'nothing was asked yet'),
    tileOf(String(model.classes.length), model.classes.length === 1 ? 'Class' : 'Classes', count(samples(), 'photo')),
    h('div', { className: 'card tile-number' }, h('p', { className: 'quiet small' }, 'Needs photos most'), needs.length
      ? h('p', { className: 'row tight' }, needs.slice(0, 3).map((one) => { const name = one.class ?? one; return may('teach') ? h('button', { type: 'button', className: 'small', on: { click: () => more(name) } }, name) : h('span', {}, name); }))
      : h('p', { className: 'big' }, '–'), h('p', { className: 'quiet small' }, needs.length ? 'few photos, or often wrong' : 'no class stands out')),
  );
}

function drawClasses(quality) {
  const known = perClass(quality);
  if (!model.classes.length) { $('#quality-classes').replaceChildren(h('p', { className: 'quiet' }, 'Teach it first. Then each class has a line here.')); return; }
  const rows = model.classes.map((one) => {
    const told = known.get(one.name) ?? one.prequential ?? {};
    const share = told.asked ? told.right / told.asked : null;
    return h('tr', {}, h('th', { scope: 'row' }, swatch(one.name), ` ${one.name}`), h('td', { className: 'numbers' }, one.samples.toLocaleString('en')),
      h('td', { className: 'numbers' }, told.asked ? `${told.right} of ${told.asked}` : '–'), h('td', { className: 'wide' }, share === null ? '' : bar(share)), h('td', { className: 'numbers' }, percent(share)));
  });
  $('#quality-classes').replaceChildren(h('div', { className: 'scroll tall', tabIndex: 0, role: 'region', 'aria-label': 'Classes' }, h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Class'), h('th', { scope: 'col', className: 'numbers' }, 'Photos'), h('th', { scope: 'col', className: 'numbers' }, 'Right'), h('th', { scope: 'col', className: 'wide' }, h('span', { className: 'sr' }, 'As a bar')), h('th', { scope: 'col', className: 'numbers' }, 'Share'))), h('tbody', {}, rows))));
}

// [{class, said, count}], whatever shape the server gives.
function confusionsOf(quality) {
  return (quality.confusions ?? []).map((one) => ({ class: one.class ?? one.true ?? one.is, said: one.said ?? one.answered ?? one.predicted ?? 'unknown', count: one.count ?? one.times ?? one.samples }))
    .filter((one) => one.class !== one.said && one.count).sort((a, b) => b.count - a.count);
}

function drawConfusions(quality) {
  const place = $('#quality-confusions');
  const list = confusionsOf(quality);
  if (!list.length) {
    place.replaceChildren(h('p', { className: 'quiet' }, quality.asked ? 'No photo was taken for another class.' : 'Pairs that it mixes up will stand here.'));
    return;
  }
  const most = list[0].count;
  const names = model.classes.map((one) => one.name);
  const parts = [h('ol', { className: 'pairs' }, list.slice(0, 8).map((one) => h('li', {}, h('span', {}, swatch(one.class), ` ${one.class} `, h('span', { className: 'quiet' }, 'taken for'), ' ', one.said === 'unknown' ? h('em', {}, 'unknown') : one.said), bar(one.count / most), h('span', { className: 'numbers' }, `${one.count}×`))))];
  if (names.length > 1 && names.length <= MATRIX_MOST) parts.push(h('details', {}, h('summary', {}, 'As a table'), matrix(names, list)));
  place.replaceChildren(...parts);
}

function matrix(names, list) {
  const columns = [...names, 'unknown'];
  const most = Math.max(...list.map((one) => one.count));
  const cells = (name) => columns.map((said) => {
    const found = list.find((one) => one.class === name && one.said === said)?.count ?? 0;
    const cell = h('td', { className: 'heat numbers' }, name === said ? '·' : found || '');
    cell.style.setProperty('--heat', found / most);
    return cell;
  });
  return h('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Table of confusions' }, h('table', { className: 'matrix' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'It is'), columns.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, names.map((name) => h('tr', {}, h('th', { scope: 'row' }, name), cells(name))))));
}

const binsOf = (quality) => (quality.calibration?.bins ?? quality.calibration ?? []).map((bin) => ({
  asked: bin.asked ?? bin.count ?? bin.samples ?? 0,
  said: bin.said ?? bin.probability ?? bin.mean_probability ?? (bin.from !== undefined ? (bin.from + bin.to) / 2 : null),
  right: bin.share ?? bin.accuracy ?? (bin.asked ?? bin.count ? bin.right / (bin.asked ?? bin.count) : null),
})).filter((bin) => bin.asked && bin.said !== null);

function drawCalibration(quality) {
  const place = $('#quality-calibration');
  const bins = binsOf(quality);
  const asked = bins.reduce((sum, bin) => sum + bin.asked, 0);
  if (asked < 10) { place.replaceChildren(h('p', { className: 'quiet' }, 'After some more photos a line shows here whether “90 %” is right 90 times of 100.')); return; }
  const said = bins.reduce((sum, bin) => sum + bin.said * bin.asked, 0) / asked;
  const right = bins.reduce((sum, bin) => sum + bin.right * bin.asked, 0) / asked;
  const word = Math.abs(said - right) < 0.05 ? 'That fits.' : said > right ? 'It is too sure of itself.' : 'It is better than it says.';
  const sentence = `It says ${percent(said)} on average and is right ${percent(right)} of the time. ${word}`;
  const x = (share) => 36 + 204 * share;
  const y = (share) => 214 - 204 * share;
  const most = Math.max(...bins.map((bin) => bin.asked));
  const marks = [0, 0.5, 1].flatMap((share) => [svg('line', { x1: 36, x2: 240, y1: y(share), y2: y(share), class: 'grid' }), svg('text', { x: 30, y: y(share) + 4, 'text-anchor': 'end' }, `${share * 100}`), svg('text', { x: x(share), y: 230, 'text-anchor': share ? 'end' : 'start' }, `${share * 100}`)]);
  place.replaceChildren(h('p', {}, sentence), svg('svg', { viewBox: '0 0 250 248', class: 'chart square', role: 'img', 'aria-label': sentence }, ...marks,
    svg('text', { x: 138, y: 245, 'text-anchor': 'middle' }, 'it says, %'), svg('text', { x: 40, y: 22 }, 'is right, %'),
    svg('line', { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: 'ideal' }),
    svg('polyline', { points: bins.map((bin) => `${x(bin.said)},${y(bin.right)}`).join(' '), class: 'line thin' }),
    ...bins.map((bin) => svg('circle', { cx: x(bin.said), cy: y(bin.right), r: 3 + 5 * Math.sqrt(bin.asked / most), class: 'dot' }, svg('title', {}, `${count(bin.asked, 'photo')}: says ${percent(bin.said)}, right ${percent(bin.right)}`)))));
}

export async function enter() {
  const quality = await get(`${base()}/quality`);
  if (!model.classes.length) await refresh();
  drawTiles(quality);
  drawClasses(quality);
  drawConfusions(quality);
  drawCalibration(quality);
  await drawMap();
  if (model.showMap) { model.showMap = false; $('#map-h').scrollIntoView({ block: 'start' }); }
}

export function begin() {
  show($('#map'), true);
  document.addEventListener('model-changed', () => { if (location.hash === '#quality') enter().catch(() => {}); });
}
