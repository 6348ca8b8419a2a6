import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { go, note } from '../state.ts';

/** A link to another view of the page. */
export function Link(props: {
  to: string;
  children: ComponentChildren;
  class?: string;
  current?: boolean;
  /** What a screen reader says in place of the children. */
  label?: string;
}) {
  const { to, children, current, label } = props;
  return (
    <a
      href={to}
      class={props.class}
      aria-label={label}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}

export function Alert({ text, id }: { text: string; id?: string }) {
  return text === '' ? null : (
    <p class="alert" role="alert" id={id}>
      {text}
    </p>
  );
}

/** A modal dialog; `onClose` is called when it is closed in any way. `held`: only its own buttons close it. */
export function Dialog(props: {
  id: string;
  title: string;
  onClose: () => void;
  held?: boolean;
  children: ComponentChildren;
}) {
  const { id, title, onClose, held, children } = props;
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    ref.current?.showModal();
  }, []);
  return (
    <dialog
      id={id}
      ref={ref}
      aria-labelledby={`${id}-title`}
      onClose={onClose}
      onCancel={(event) => held && event.preventDefault()}
      // Some browsers let a second Escape pass `cancel`.
      onKeyDown={(event) => held && event.key === 'Escape' && event.preventDefault()}
    >
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
    </dialog>
  );
}

/** Copies a text. Without HTTPS a page cannot use the clipboard: then it selects the text of its field. */
export function CopyButton({ text, what, field }: { text: string; what: string; field?: string }) {
  const [done, setDone] = useState(false);
  async function copy(): Promise<void> {
    if (field !== undefined) (document.getElementById(field) as HTMLInputElement | null)?.select();
    try {
      await navigator.clipboard.writeText(text);
      note.value = `Copied ${what}`;
      setDone(true);
      setTimeout(() => setDone(false), 2000);
    } catch {
      note.value = 'Press Ctrl+C to copy';
    }
  }
  return (
    <button type="button" class="small" aria-label={`Copy ${what}`} onClick={() => void copy()}>
      {done ? 'Copied' : 'Copy'}
    </button>
  );
}

/** A text to copy, with its button. */
export function CopyLine({ label, text }: { label: string; text: string }) {
  return (
    <div class="copy-line">
      <span class="soft">{label}</span>
      <code tabIndex={0}>{text}</code>
      <CopyButton text={text} what={label} />
    </div>
  );
}

/** A time as a date, with the exact time as a tooltip. */
export function Time({ at, absent }: { at: string | null; absent: string }) {
  if (at === null) return <>{absent}</>;
  const date = new Date(at);
  const shown = date.toLocaleDateString(undefined, { year: 'numeric', month: 'short', day: 'numeric' });
  return (
    <time dateTime={at} title={date.toLocaleString()}>
      {shown}
    </time>
  );
}

/** What stands where a list is empty: what could be here, and how to get it. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A table for the rows that are its children. `minor`: the column that a narrow window leaves out. `actions`: the last column has buttons. */
export function Table(props: {
  title: string;
  columns: readonly string[];
  minor?: string;
  actions?: boolean;
  children: ComponentChildren;
}) {
  const { title, columns, minor, actions, children } = props;
  return (
    <table>
      <caption class="hidden">{title}</caption>
      <thead>
        <tr>
          {columns.map((name) => (
            <th scope="col" key={name} class={name === minor ? 'minor' : undefined}>
              {name}
            </th>
          ))}
          {actions && (
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

/** The button in a row that asks before what the row shows goes. */
export function RowButton({ verb, name, onClick }: { verb: 'Delete' | 'Revoke'; name: string; onClick: () => void }) {
  return (
    <button type="button" class="quiet danger" aria-label={`${verb} ${name}`} onClick={onClick}>
      {verb}
    </button>
  );
}

/** One of several, as a row of buttons. */
export function Choice<T extends string>(props: {
  legend: string;
  name: string;
  value: T;
  options: readonly { value: T; title: string }[];
  onChange: (value: T) => void;
}) {
  const { legend, name, value, options, onChange } = props;
  return (
    <fieldset class="segments">
      <legend>{legend}</legend>
      <div>
        {options.map((option) => (
          <label key={option.value}>
            <input type="radio" name={name} checked={option.value === value} onChange={() => onChange(option.value)} />
            <span>{option.title}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** A text to copy, in a field of one line or of `rows`. */
export function CopyField(props: { id: string; label: string; text: string; what: string; rows?: number }) {
  const { id, label, text, what, rows } = props;
  const field = { id, readOnly: true, spellcheck: false, autocomplete: 'off', value: text };
  return (
    <>
      <label for={id}>{label}</label>
      <div class="copy">
        {rows === undefined ? <input {...field} /> : <textarea {...field} rows={rows} />}
        <CopyButton text={text} what={what} field={id} />
      </div>
    </>
  );
}

/** Shows what no other answer has. When it closes, which only its button does, the page has it no more. */
export function OnceDialog(props: { id: string; title: string; close: () => void; children: ComponentChildren }) {
  const { id, title, close, children } = props;
  return (
    <Dialog id={id} title={title} onClose={close} held>
      {children}
      <div class="actions">
        <button class="primary" type="button" onClick={close}>
          Done
        </button>
      </div>
    </Dialog>
  );
}
