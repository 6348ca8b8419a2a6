import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';

export interface ScreenEvents {
  typed: (text: string) => void;
  resized: (columns: number, rows: number) => void;
  /** Shift+F6: Tab belongs to the shell, so another key leads out. */
  left: () => void;
}

/** A terminal on the page. */
export interface Screen {
  readonly columns: number;
  readonly rows: number;
  write: (bytes: Uint8Array | string, done?: () => void) => void;
  focus: () => void;
  /** Also keeps what is shown as text for a screen reader. In this mode the library takes no text of touch keyboards. */
  readAloud: (isOn: boolean) => void;
  dispose: () => void;
}

/** Dark in both themes: programs choose their colours for it. */
const COLOURS = { background: '#0d1117', foreground: '#e6edf3', cursor: '#e6edf3', selectionBackground: '#3b5578' };
const FONT = 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace';
const SCROLLBACK = 5000;

async function loadStyles(): Promise<void> {
  const href = '/dashboard/xterm.css';
  if (document.querySelector(`link[href="${href}"]`) !== null) return;
  const link = document.createElement('link');
  Object.assign(link, { rel: 'stylesheet', href });
  const loaded = new Promise((resolve) => {
    for (const event of ['load', 'error']) link.addEventListener(event, resolve);
  });
  document.head.append(link);
  await loaded;
}

/** Draws a terminal into the element, as large as it is. */
export async function openScreen(element: HTMLElement, events: ScreenEvents): Promise<Screen> {
  await loadStyles();
  const terminal = new Terminal({
    fontFamily: FONT,
    fontSize: 13,
    scrollback: SCROLLBACK,
    theme: COLOURS,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(element);
  fit.fit();
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== 'F6' || !event.shiftKey) return true;
    event.preventDefault();
    if (event.type === 'keydown') events.left();
    return false;
  });
  terminal.onData(events.typed);
  terminal.onResize(({ cols, rows }) => events.resized(cols, rows));
  const sizes = new ResizeObserver(() => fit.fit());
  sizes.observe(element);
  return {
    get columns() {
      return terminal.cols;
    },
    get rows() {
      return terminal.rows;
    },
    write: (bytes, done) => terminal.write(bytes, done),
    focus: () => terminal.focus(),
    readAloud: (isOn) => {
      terminal.options.screenReaderMode = isOn;
    },
    dispose: () => {
      sizes.disconnect();
      terminal.dispose();
    },
  };
}
