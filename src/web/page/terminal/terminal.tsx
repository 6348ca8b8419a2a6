import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../calls/call.ts';
import { Alert } from '../parts/controls.tsx';
import { tenant } from '../state.ts';
import { type Link, openLink } from './link.ts';
import type { Screen } from './screen.ts';

interface Started {
  readAloud: (isOn: boolean) => void;
  /** Ends the shell and its screen. */
  close: () => void;
}

/** Opens the shell and the screen for it. */
function start(
  element: HTMLElement,
  id: string,
  { ended, left }: { ended: (why: string) => void; left: () => void },
): Started {
  let [screen, link, isClosed]: [Screen | undefined, Link | undefined, boolean] = [undefined, undefined, false];
  async function open(): Promise<void> {
    // The page loads the terminal when somebody opens one.
    const { openScreen } = await import('./screen.ts');
    if (isClosed) return;
    screen = await openScreen(element, {
      typed: (text) => link?.type(text),
      resized: (columns, rows) => link?.resize(columns, rows),
      left,
    });
    const { columns, rows } = screen;
    const path = `/instances/${encodeURIComponent(id)}/terminal`;
    const output = (bytes: Uint8Array, done: () => void): void => screen?.write(bytes, done);
    link = await openLink({ namespace: tenant.value, path, columns, rows }, { output, ended });
    screen.focus();
    if (isClosed) close();
  }
  function close(): void {
    isClosed = true;
    link?.close();
    screen?.dispose();
  }
  open().catch((error: unknown) => ended(messageOf(error)));
  return { close, readAloud: (isOn) => screen?.readAloud(isOn) };
}

/** A shell in the instance, without a key and without a client. */
export function OpenTerminal({ id, close }: { id: string; close: () => void }) {
  const [end, setEnd] = useState<string>();
  const [attempt, setAttempt] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const started = useRef<Started>(undefined);
  useEffect(() => {
    if (box.current === null) return undefined;
    started.current = start(box.current, id, { ended: setEnd, left: () => button.current?.focus() });
    return started.current.close;
  }, [id, attempt]);
  return (
    <>
      <Alert text={end ?? ''} />
      {end === '' && <p role="status">The shell ended.</p>}
      <div class="terminal-box" ref={box} key={attempt} />
      <div class="title">
        <p class="help">Shift+F6 leads out of the terminal by keyboard.</p>
        <div class="buttons">
          <label class="check">
            <input type="checkbox" onChange={(event) => started.current?.readAloud(event.currentTarget.checked)} />
            <span>For a screen reader</span>
          </label>
          {end !== undefined && (
            <button
              type="button"
              onClick={() => {
                setEnd(undefined);
                setAttempt(attempt + 1);
              }}
            >
              Open again
            </button>
          )}
          <button type="button" ref={button} onClick={close}>
            Close terminal
          </button>
        </div>
      </div>
    </>
  );
}
