// The camera: a live picture, single frames of it, and a file field where no live camera can work.

import { h, show } from './dom.js';

export function trouble() {
  if (!isSecureContext) return 'The camera needs https or localhost.';
  if (!navigator.mediaDevices?.getUserMedia) return 'This browser gives pages no camera.';
  return null;
}

// Where the live camera can't work its button says so, and the phone's own camera takes over.
export function offer(button, taken) {
  const reason = trouble();
  if (!reason) return;
  button.disabled = true;
  button.lastChild.textContent = reason.replace(/\.$/, '');
  button.after(field(taken));
}

function field(taken) {
  const input = h('input', { type: 'file', accept: 'image/*', 'aria-label': 'Take a photo', on: { change: () => { taken([...input.files]); input.value = ''; } } });
  input.setAttribute('capture', 'environment');
  return h('label', { className: 'button' }, 'Take a photo', input);
}

const REASONS = {
  NotAllowedError: 'The browser does not allow the camera for this page. Allow it in the address bar and try again.',
  NotFoundError: 'No camera was found.',
  NotReadableError: 'Another program uses the camera.',
};

export class Camera {
  constructor(holder, { controls, taken }) {
    this.holder = holder;
    this.controls = controls;
    this.taken = taken;
    this.stream = null;
  }

  get running() { return Boolean(this.stream); }

  async start(device) {
    this.stop();
    this.video = h('video', { muted: true, playsInline: true, autoplay: true, 'aria-label': 'Picture of the camera' });
    show(this.holder, true);
    try {
      const wanted = device ? { deviceId: { exact: device } } : { facingMode: 'environment' };
      this.stream = await navigator.mediaDevices.getUserMedia({ video: { ...wanted, width: { ideal: 640 }, height: { ideal: 480 } } });
    } catch (error) {
      this.holder.replaceChildren(h('p', { className: 'error', role: 'alert' }, REASONS[error.name] || `The camera can’t be used: ${error.message}`), field(this.taken));
      return false;
    }
    this.video.srcObject = this.stream;
    const close = h('button', { type: 'button', on: { click: () => this.close() } }, 'Close camera');
    this.holder.replaceChildren(this.video, h('div', { className: 'row' }, ...this.controls, await this.choice(), close));
    await this.video.play().catch(() => {});
    return true;
  }

  async choice() {
    const cameras = (await navigator.mediaDevices.enumerateDevices()).filter((device) => device.kind === 'videoinput');
    if (cameras.length < 2) return '';
    const used = this.stream.getVideoTracks()[0].getSettings().deviceId;
    const select = h('select', { 'aria-label': 'Camera', on: { change: () => this.start(select.value) } },
      cameras.map((camera, index) => h('option', { value: camera.deviceId, selected: camera.deviceId === used }, camera.label || `Camera ${index + 1}`)));
    return select;
  }

  // The present frame as a JPEG; null while there is none yet.
  async frame() {
    const { videoWidth: width, videoHeight: height } = this.video || {};
    if (!this.stream || !width) return null;
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    canvas.getContext('2d').drawImage(this.video, 0, 0);
    return new Promise((resolve) => { canvas.toBlob(resolve, 'image/jpeg', 0.93); });
  }

  stop() {
    for (const track of this.stream?.getTracks() || []) track.stop();
    this.stream = null;
  }

  close() {
    this.stop();
    this.holder.replaceChildren();
    show(this.holder, false);
    this.closed?.();
  }
}

// A button that takes photo after photo while it is held, by pointer or key; a click takes one.
export function holdButton(text, take) {
  const button = h('button', { type: 'button', className: 'primary hold' }, text);
  let timer = null;
  let last = 0;
  const once = () => { last = Date.now(); take(); };
  const begin = () => { if (timer === null) { once(); timer = setInterval(once, 250); button.classList.add('held'); } };
  const end = () => { clearInterval(timer); timer = null; button.classList.remove('held'); };
  button.addEventListener('pointerdown', (event) => { if (event.button === 0) { button.setPointerCapture(event.pointerId); begin(); } });
  for (const name of ['pointerup', 'pointercancel', 'lostpointercapture', 'blur']) button.addEventListener(name, end);
  button.addEventListener('keydown', (event) => { if (event.key === ' ' || event.key === 'Enter') { event.preventDefault(); if (!event.repeat) begin(); } });
  button.addEventListener('keyup', (event) => { if (event.key === ' ' || event.key === 'Enter') { event.preventDefault(); end(); } });
  button.addEventListener('click', () => { if (Date.now() - last > 400) once(); });
  button.addEventListener('contextmenu', (event) => event.preventDefault());
  return button;
}
