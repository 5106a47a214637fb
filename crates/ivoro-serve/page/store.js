// Receipts and thumbnails of the photos taught in this browser. They survive a reload and go nowhere else.

const NAME = 'ivoro';
let opened = null;
let memory = null;

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function database() {
  opened ||= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      const store = request.result.createObjectStore('taught', { keyPath: 'id', autoIncrement: true });
      store.createIndex('model', 'model');
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error('blocked'));
  }).catch(() => { memory = new Map(); return null; });
  return opened;
}

async function store(mode) {
  const base = await database();
  return base && base.transaction('taught', mode).objectStore('taught');
}

export async function add(records) {
  const place = await store('readwrite');
  if (!place) { for (const record of records) memory.set(record.id = memory.size + Math.random(), record); return; }
  await Promise.all(records.map(async (record) => { record.id = await promised(place.add(record)); }));
}

export async function ofModel(model) {
  const place = await store('readonly');
  if (!place) return [...memory.values()].filter((record) => record.model === model);
  return promised(place.index('model').getAll(model));
}

export async function put(records) {
  const place = await store('readwrite');
  if (!place) { for (const record of records) memory.set(record.id, record); return; }
  await Promise.all(records.map((record) => promised(place.put(record))));
}

export async function remove(ids) {
  const place = await store('readwrite');
  if (!place) { for (const id of ids) memory.delete(id); return; }
  await Promise.all(ids.map((id) => promised(place.delete(id))));
}

// Each record of a model that is changed or, where `change` gives null, dropped.
export async function update(model, change) {
  const kept = [];
  const gone = [];
  for (const record of await ofModel(model)) {
    const after = change(record);
    if (after === null) gone.push(record.id);
    else if (after) kept.push(after);
  }
  if (kept.length) await put(kept);
  if (gone.length) await remove(gone);
}

export async function clear() {
  const place = await store('readwrite');
  if (place) await promised(place.clear()); else memory.clear();
}
