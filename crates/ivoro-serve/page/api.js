// Calls of the server: the token, its errors as sentences, and repeats under the same key until it answers.

import { $, show } from './dom.js';

export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Works over plain http too, where crypto.randomUUID does not exist.
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

const TOKEN = 'ivoro-token';
let token = sessionStorage.getItem(TOKEN);
let asking = null;

function askForToken(message) {
  if (asking) return asking;
  const dialog = $('#token-dialog');
  const form = $('#token-form');
  const input = $('#token');
  $('#token-error').textContent = message;
  input.value = '';
  if (!dialog.open) dialog.showModal();
  input.focus();
  asking = new Promise((resolve) => {
    dialog.oncancel = (event) => event.preventDefault();
    form.onsubmit = (event) => {
      event.preventDefault();
      token = input.value.trim();
      sessionStorage.setItem(TOKEN, token);
      dialog.close();
      asking = null;
      resolve();
    };
  });
  return asking;
}

export const hasToken = () => Boolean(token);
export function leave() {
  sessionStorage.removeItem(TOKEN);
  location.reload();
}

// What is said while the server can't be reached; the wait ends early when asked to.
let wake = null;
let silent = 0;
function wait(seconds, sentence, signal) {
  const place = $('#lost');
  if (sentence) {
    const now = document.createElement('button');
    now.type = 'button';
    now.textContent = 'Try now';
    now.onclick = () => wake?.();
    const text = document.createElement('span');
    text.textContent = sentence;
    place.replaceChildren(text, now);
    show(place, true);
    silent += 1;
  }
  return new Promise((resolve, reject) => {
    const end = () => { clearTimeout(timer); signal?.removeEventListener('abort', stop); resolve(); };
    const stop = () => { clearTimeout(timer); found(); reject(new DOMException('stopped', 'AbortError')); };
    const timer = setTimeout(end, seconds * 1000);
    signal?.addEventListener('abort', stop);
    wake = end;
  });
}
function found() {
  if (silent === 0) return;
  silent = 0;
  show($('#lost'), false);
  document.dispatchEvent(new Event('server-back'));
}
addEventListener('online', () => wake?.());

async function problem(response) {
  const text = await response.text().catch(() => '');
  try {
    const told = JSON.parse(text);
    return new Problem(response.status, told.detail || told.title || response.statusText);
  } catch {
    return new Problem(response.status, text.slice(0, 300) || `The server answered ${response.status} ${response.statusText}.`);
  }
}

// A request that a living server cuts off again and again is refused by it, not lost.
async function alive() {
  try {
    return (await fetch(new URL('livez', document.baseURI), { cache: 'no-store' })).ok;
  } catch {
    return false;
  }
}

const pause = (attempt) => Math.min(10, 1 + attempt * 1.5);

async function lost(attempt, cutOff, signal) {
  if (attempt > 0 && await alive()) {
    if (cutOff >= 2) throw new Problem(0, 'The server cuts this request off. It may be larger than the server takes.');
    await wait(1, '', signal);
    return cutOff + 1;
  }
  const seconds = Math.round(pause(attempt));
  await wait(pause(attempt), `The server does not answer. Nothing is lost: what you did waits here. Trying again in ${seconds} s.`, signal);
  return cutOff;
}

function headersOf(options, key) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (options.type) headers['Content-Type'] = options.type;
  if (options.ifMatch) headers['If-Match'] = options.ifMatch;
  if (options.accept) headers.Accept = options.accept;
  if (key) headers['Idempotency-Key'] = key;
  return headers;
}

// One request, repeated while the server is away or busy. A write keeps its key, so that it counts once.
// `signal` ends it at once; `patience` ends only the waiting between repeats.
export async function send(method, path, options = {}) {
  const key = method === 'GET' || options.key === false ? null : options.key || newKey();
  let cutOff = 0;
  for (let attempt = 0; ; attempt += 1) {
    let response;
    const sent = token;
    try {
      response = await fetch(new URL(path, document.baseURI), {
        method, headers: headersOf(options, key), body: options.body, signal: options.signal, cache: 'no-store', credentials: 'omit', redirect: 'error',
      });
    } catch (error) {
      if (options.signal?.aborted || options.once) throw error;
      cutOff = await lost(attempt, cutOff, options.patience ?? options.signal);
      continue;
    }
    found();
    if (response.status === 401) {
      if (token === sent) await askForToken(sent ? 'This token is not known here.' : '');
      continue;
    }
    if ((response.status === 503 || response.status === 429) && !options.once && attempt < 60) {
      const seconds = Math.min(30, Number(response.headers.get('Retry-After')) || 1);
      const told = await problem(response);
      await wait(seconds, attempt < 2 && response.status === 503 ? '' : `The server asks to wait: ${told.message}. Trying again in ${seconds} s.`, options.patience ?? options.signal);
      continue;
    }
    if (!response.ok) throw await problem(response);
    return response;
  }
}

export async function get(path, options) {
  return (await send('GET', path, options)).json();
}

export async function write(method, path, value, options = {}) {
  const response = await send(method, path, value === undefined ? options : { ...options, body: JSON.stringify(value), type: 'application/json' });
  const text = await response.text();
  return text ? JSON.parse(text) : {};
}

// Multipart by hand: a repeat must have the same bytes, and the browser's own boundary changes each time.
export function multipart(parts) {
  const boundary = `ivoro-${newKey()}`;
  const escape = (name) => name.replace(/["\r\n]/g, (sign) => `%${sign.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`);
  const pieces = parts.flatMap(({ field = 'image', text, name, data, type }) => (data === undefined
    ? [`--${boundary}\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${text}\r\n`]
    : [`--${boundary}\r\nContent-Disposition: form-data; name="${field}"; filename="${escape(name)}"\r\nContent-Type: ${type || 'application/octet-stream'}\r\n\r\n`, data, '\r\n']));
  return { body: new Blob([...pieces, `--${boundary}--\r\n`]), type: `multipart/form-data; boundary=${boundary}` };
}

// Server-sent events with a token: EventSource can't carry one.
export async function listen(path, hear, signal) {
  const response = await fetch(new URL(path, document.baseURI), { headers: headersOf({ accept: 'text/event-stream' }), signal, cache: 'no-store' });
  if (!response.ok) throw await problem(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const event of events) {
      const data = event.split(/\r?\n/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).join('\n');
      if (data) try { hear(JSON.parse(data)); } catch { /* not a state of the model */ }
    }
  }
}
