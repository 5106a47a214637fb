// Taking back the last change. What the page did in several requests goes back in as many.

import { get, write } from './api.js';
import { base, model, refresh } from './model.js';
import * as store from './store.js';

const done = [];

// `steps` requests led to the state `after`; `revert` puts this browser's receipts back as they were.
export function remember(action) {
  done.push({ model: model.name, ...action });
}

const matching = () => { const action = done.at(-1); return action && action.model === model.name && action.after === model.hash ? action : null; };

// What would be undone: what the page did, or what the server says of its last change.
export async function peek() {
  try {
    const told = await get(`${base()}/undo`);
    if (!told || !Object.keys(told).length) return null;
    const text = matching()?.text;
    return text ? { ...told, text } : told;
  } catch (error) {
    if (error.status === 404 || error.status === 409) return null;
    throw error;
  }
}

export async function undo() {
  const action = matching();
  const state = model.hash;
  let steps = 0;
  try {
    for (; steps < (action?.steps ?? 1); steps += 1) await write('POST', `${base()}/undo`);
  } catch (error) {
    await refresh();
    if (steps === 0) throw error;
    throw new Error(`Only the last ${steps} of ${action?.steps} steps could be undone. ${error.message}`);
  }
  if (action) {
    done.pop();
    await action.revert();
  } else {
    await store.update(model.name, (record) => (record.hash === state ? null : undefined));
  }
  await refresh();
}
