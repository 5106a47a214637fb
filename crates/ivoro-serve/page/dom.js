// Elements from words. What a server or a person says enters the page as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name in element && name !== 'list') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat());
  return element;
}

export const icon = (name) => svg('svg', { 'aria-hidden': 'true' }, svg('use', { href: `#i-${name}` }));

export const show = (element, visible) => { element.hidden = !visible; };

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;

export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return '–';
  if (share > 0.995 && share < 1) return '>\u00a099\u00a0%';
  if (share > 0 && share < 0.005) return '<\u00a01\u00a0%';
  return `${Math.round(share * 100)}\u00a0%`;
}

export function bytes(n) {
  for (const unit of ['bytes', 'kB', 'MB']) {
    if (n < 1000) return `${unit === 'bytes' || n >= 100 ? Math.round(n) : n.toFixed(1)} ${unit}`;
    n /= 1000;
  }
  return `${n.toFixed(1)} GB`;
}

export function when(seconds) {
  const ago = Date.now() / 1000 - seconds;
  if (ago < 60) return 'just now';
  if (ago < 3600) return `${count(Math.floor(ago / 60), 'minute')} ago`;
  return new Date(seconds * 1000).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
}

const PAST = { learn: 'learned', teach: 'taught', update: 'taught more', forget: 'forgot', retract: 'took out', relabel: 'moved', rename: 'renamed', merge: 'merged', seal: 'sealed', join: 'joined', undo: 'undid', replace: 'replaced' };
export const past = (verb) => PAST[verb] ?? String(verb ?? '');

// A hue of its own for each class: neighbours in the list lie far apart on the wheel.
const hues = new Map();
export function hue(name) {
  if (!hues.has(name)) hues.set(name, Math.round((168 + hues.size * 137.508) % 360));
  return hues.get(name);
}

export function swatch(name) {
  const dot = h('span', { className: 'swatch' });
  dot.setAttribute('aria-hidden', 'true');
  dot.style.setProperty('--hue', hue(name));
  return dot;
}

export function bar(share, label) {
  const inner = h('span');
  inner.style.setProperty('--share', Math.max(0, Math.min(1, share || 0)));
  const outer = h('span', { className: 'bar' }, inner);
  if (label) { outer.setAttribute('role', 'img'); outer.setAttribute('aria-label', label); } else outer.setAttribute('aria-hidden', 'true');
  return outer;
}

// For screen readers: what changed without the focus moving.
export function say(text) {
  const place = $('#said');
  place.textContent = place.textContent === text ? `${text}\u00a0` : text;
}

let toastTimer;
export function toast(text, ...actions) {
  const place = $('#toast');
  place.replaceChildren(h('p', {}, text), ...actions);
  show(place, true);
  say(text);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => show(place, false), actions.length ? 12000 : 5000);
}
export const hideToast = () => show($('#toast'), false);

export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = h('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// Asks in a dialog. `act` gets what was typed; its error is shown and the dialog stays.
export function question({ title, text, yes, label, value = '', classes = false, danger = false, check, act }) {
  const dialog = $('#question');
  const input = $('#question-input');
  const go = $('#question-yes');
  $('#question-h').textContent = title;
  $('#question-text').textContent = text || '';
  $('#question-error').textContent = '';
  show($('#question-field'), Boolean(label));
  show($('#question-check-field'), Boolean(check));
  $('#question-check-label').textContent = check || '';
  $('#question-check').checked = false;
  $('#question-label').textContent = label || '';
  input.value = value;
  input.required = Boolean(label);
  if (classes) input.setAttribute('list', 'class-names'); else input.removeAttribute('list');
  go.textContent = yes;
  go.className = danger ? 'danger' : 'primary';
  go.disabled = false;
  dialog.showModal();
  if (label) input.select(); else $('#question-no').focus();
  return new Promise((resolve) => {
    const form = $('form', dialog);
    const finish = (result) => { form.onsubmit = null; dialog.oncancel = null; $('#question-no').onclick = null; dialog.close(); resolve(result); };
    dialog.oncancel = (event) => { event.preventDefault(); finish(undefined); };
    $('#question-no').onclick = () => finish(undefined);
    form.onsubmit = async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        finish((await act(input.value.trim(), $('#question-check').checked)) ?? true);
      } catch (error) {
        $('#question-error').textContent = error.message;
        go.disabled = false;
      }
    };
  });
}
