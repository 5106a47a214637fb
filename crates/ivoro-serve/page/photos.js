// Photos as they come: dropped, chosen, pasted, in folders or in a zip; and their thumbnails.

const ENDS = /\.(jpe?g|jpe|jfif|png|gif|bmp|webp|tiff?|pnm|ppm|pgm|heic|heif|avif|jxl)$/i;
const TYPES = { jpg: 'image/jpeg', jpeg: 'image/jpeg', png: 'image/png', gif: 'image/gif', bmp: 'image/bmp', webp: 'image/webp', tif: 'image/tiff', tiff: 'image/tiff' };
const THUMB = 144;

export const isPhoto = (file) => (file.type.startsWith('image/') && file.type !== 'image/svg+xml') || ENDS.test(file.name);
const isZip = (file) => /\.zip$/i.test(file.name) || file.type === 'application/zip';
const isHidden = (path) => path.split('/').some((part) => part.startsWith('.') || part === '__MACOSX');

function listed(folder) {
  const reader = folder.createReader();
  const next = () => new Promise((resolve, reject) => reader.readEntries(resolve, reject));
  return (async () => {
    const all = [];
    for (;;) {
      const some = await next();
      if (!some.length) return all.sort((a, b) => a.name.localeCompare(b.name));
      all.push(...some);
    }
  })();
}

async function walk(entry, found, folder) {
  if (isHidden(entry.name)) return;
  if (entry.isDirectory) {
    for (const child of await listed(entry)) await walk(child, found, entry.name);
    return;
  }
  found.push({ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), folder });
}

// Everything in a drop or on the clipboard. Entries must be taken before the first wait.
export async function fromTransfer(transfer) {
  const entries = [...transfer.items].filter((item) => item.kind === 'file').map((item) => item.webkitGetAsEntry?.() || item.getAsFile()).filter(Boolean);
  const found = [];
  for (const entry of entries) {
    if (entry instanceof File) found.push({ file: entry, folder: null });
    else await walk(entry, found, null);
  }
  return sorted(found);
}

export function fromFiles(files) {
  return sorted([...files].filter((file) => !isHidden(file.webkitRelativePath || file.name)).map((file) => {
    const parts = (file.webkitRelativePath || '').split('/');
    return { file, folder: parts.length > 1 ? parts.at(-2) : null };
  }));
}

async function sorted(found) {
  const photos = [];
  const others = [];
  for (const { file, folder } of found) {
    if (isZip(file)) {
      try {
        photos.push(...await unzip(file));
      } catch (error) {
        others.push({ name: file.name, reason: error.message });
      }
    } else if (isPhoto(file)) photos.push({ file, folder });
    else if (!folder || !/\.(txt|md|json|csv|xml|ini|db)$/i.test(file.name)) others.push({ name: file.name, reason: 'not a photo' });
  }
  return { photos, others };
}

// ---- zip: its directory is read in the browser, each photo when it is needed

const MAX_ENTRY = 256e6;

async function unzip(file) {
  const tail = new DataView(await file.slice(Math.max(0, file.size - 65557)).arrayBuffer());
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0) throw new Error('not a zip file, or only a part of one');
  const start = tail.getUint32(end + 16, true);
  if (start === 0xffffffff) throw new Error('a zip of more than 4 GB: unpack it and drop the folder');
  const directory = new DataView(await file.slice(start, start + tail.getUint32(end + 12, true)).arrayBuffer());
  const photos = [];
  for (let at = 0; at + 46 <= directory.byteLength && directory.getUint32(at, true) === 0x02014b50;) {
    const [names, extra, comment] = [28, 30, 32].map((offset) => directory.getUint16(at + offset, true));
    const path = new TextDecoder().decode(new Uint8Array(directory.buffer, at + 46, names));
    const entry = {
      method: directory.getUint16(at + 10, true), packed: directory.getUint32(at + 20, true), size: directory.getUint32(at + 24, true), start: directory.getUint32(at + 42, true),
    };
    at += 46 + names + extra + comment;
    if (!ENDS.test(path) || isHidden(path)) continue;
    const parts = path.split('/');
    photos.push({ file: new Zipped(file, entry, parts.at(-1)), folder: parts.length > 1 ? parts.at(-2) : null });
  }
  if (!photos.length) throw new Error('no photos in it');
  return photos;
}

class Zipped {
  constructor(zip, entry, name) {
    this.zip = zip;
    this.entry = entry;
    this.name = name;
    this.size = entry.size;
    this.type = TYPES[name.split('.').pop().toLowerCase()] || '';
  }

  async arrayBuffer() {
    const { method, packed, size, start } = this.entry;
    if (size > MAX_ENTRY) throw new Error('too large');
    const head = new DataView(await this.zip.slice(start, start + 30).arrayBuffer());
    const from = start + 30 + head.getUint16(26, true) + head.getUint16(28, true);
    const data = this.zip.slice(from, from + packed);
    if (method === 0) return data.arrayBuffer();
    if (method !== 8) throw new Error('packed in a way that browsers can’t unpack');
    const stream = data.stream().pipeThrough(new DecompressionStream('deflate-raw'));
    const parts = [];
    let length = 0;
    for (const reader = stream.getReader(); ;) {
      const { value, done } = await reader.read();
      if (done) break;
      length += value.length;
      // the entry's word is not taken for it
      if (length > size) { reader.cancel(); throw new Error('larger than the zip says'); }
      parts.push(value);
    }
    return new Blob(parts).arrayBuffer();
  }
}

// ---- thumbnails: small pictures that never leave this browser

export async function thumbnail(file) {
  const blob = file instanceof Blob ? file : new Blob([await file.arrayBuffer()], { type: file.type });
  const picture = await createImageBitmap(blob);
  try {
    const side = Math.min(picture.width, picture.height);
    const canvas = document.createElement('canvas');
    canvas.width = THUMB;
    canvas.height = THUMB;
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(picture, (picture.width - side) / 2, (picture.height - side) / 2, side, side, 0, 0, THUMB, THUMB);
    return await new Promise((resolve) => { canvas.toBlob(resolve, 'image/jpeg', 0.8); });
  } finally {
    picture.close();
  }
}

// A picture in place of the photo, or its name where the browser can't show it (HEIC).
export function tile(photo, size = THUMB / 2) {
  const holder = document.createElement('span');
  holder.className = 'tile';
  const picture = document.createElement('img');
  picture.alt = photo.name;
  picture.width = size;
  picture.height = size;
  picture.hidden = true;
  holder.append(picture);
  const put = (blob) => {
    const address = URL.createObjectURL(blob);
    picture.onload = () => { picture.hidden = false; URL.revokeObjectURL(address); };
    picture.onerror = name;
    picture.src = address;
  };
  const name = () => holder.replaceChildren(Object.assign(document.createElement('span'), { className: 'no-picture', textContent: photo.name.split('.').pop().toUpperCase().slice(0, 5), title: photo.name }));
  if (photo.thumb) put(photo.thumb);
  else if (photo.file) thumbnailOf(photo).then((blob) => (blob ? put(blob) : name()));
  else name();
  return holder;
}

export async function thumbnailOf(photo) {
  if (photo.thumb === undefined) photo.thumb = await thumbnail(photo.file).catch(() => null);
  return photo.thumb;
}
