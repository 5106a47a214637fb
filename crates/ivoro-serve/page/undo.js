// Taking back the last change. What the page did in several requests goes back in as many.

import { get, write } from './api.js';
import { base, model, refresh } from './model.js';
import * as store from './store.js';

// The server keeps about this many changes. What is more goes back by its receipts, in one request.
const MOST_STEPS = 15;

const done = [];

// `steps` requests led from the state `before` to `after`. `revert` puts this browser's receipts back as they were; `receipts` are
// those of all that was taught, where it was teaching.
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

async function back(steps) {
  let hash = model.hash;
  for (let step = 0; step < steps; step += 1) {
    try {
      // whatever somebody else did meanwhile is not undone in its place
      hash = (await write('POST', `${base()}/undo`, undefined, { ifMatch: `"${hash}"` })).hash;
    } catch (error) {
      if (step === 0) throw error;
      throw new Error(`Only the last ${step} of ${steps} steps could be undone. ${error.message}`);
    }
  }
}

// `own`: what this page did last, and nothing else.
export async function undo({ own = false } = {}) {
  const action = matching();
  const state = model.hash;
  if (own && !action) throw new Error('Something else was changed since. Photos can be taken out one by one in Correct.');
  try {
    if (action?.receipts && action.steps > MOST_STEPS) await write('POST', `${base()}/retract`, { receipts: await action.receipts() });
    else await back(action?.steps ?? 1);
  } catch (error) {
    await refresh();
    throw error;
  }
  if (action) {
    done.pop();
    await action.revert();
  } else {
    await store.update(model.name, (record) => (record.hash === state ? null : undefined));
  }
  await refresh();
  // the journal has grown, so the hash is new; what the page did before that is the last change again
  const earlier = done.at(-1);
  if (action && earlier?.after === action.before) earlier.after = model.hash;
}
