import type { FoundOffer } from '../../../wire/records.ts';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { CallError, messageOf } from '../calls/call.ts';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import type { Same } from '../same/same.ts';
import { Alert } from './controls.tsx';

/** Why a form was refused. */
interface Refusal {
  message: string;
  fields: readonly { path: string; expected: string }[];
  alternatives: readonly FoundOffer[];
}

const NO_REFUSAL: Refusal = { message: '', fields: [], alternatives: [] };

function refusalOf(error: unknown): Refusal {
  if (!(error instanceof CallError)) return { ...NO_REFUSAL, message: messageOf(error) };
  const { message, fields = [], alternatives = [] } = error.failure;
  return { message, fields, alternatives };
}

/** Why the form was refused when it was last sent, and what sends it: by an action that rejects when it is refused. */
export function useRefusal(): { refusal: Refusal; send: (action: () => Promise<void>) => Promise<void> } {
  const [refusal, setRefusal] = useState(NO_REFUSAL);
  async function send(action: () => Promise<void>): Promise<void> {
    setRefusal(NO_REFUSAL);
    try {
      await action();
    } catch (error) {
      setRefusal(refusalOf(error));
      // Once it is painted: the first field that is wrong is where the person goes on.
      requestAnimationFrame(() => document.querySelector<HTMLElement>('dialog[open] [aria-invalid="true"]')?.focus());
    }
  }
  return { refusal, send };
}

/** Sends a form, and not again until that has settled. */
export function useSending(): { isSending: boolean; send: (action: () => Promise<void>) => void } {
  const [isSending, setSending] = useState(false);
  function send(action: () => Promise<void>): void {
    if (isSending) return;
    setSending(true);
    void action().finally(() => setSending(false));
  }
  return { isSending, send };
}

/** The form of a dialog: its fields, the same without this page, and two buttons. */
export function DialogForm(props: {
  button: ComponentChildren;
  isOff?: boolean;
  isDangerous?: boolean;
  same: Same | undefined;
  onInput?: (form: HTMLFormElement) => void;
  /** Settles when it was sent. Until then it is not sent again. */
  onSubmit: (form: HTMLFormElement) => Promise<void>;
  close: () => void;
  /** Stands before the buttons. */
  before?: ComponentChildren;
  children: ComponentChildren;
}) {
  const { button, isOff = false, isDangerous = false, same, onInput, onSubmit, close, before, children } = props;
  const { isSending, send } = useSending();
  return (
    <form
      autocomplete="off"
      onInput={(event) => onInput?.(event.currentTarget)}
      onSubmit={(event) => {
        event.preventDefault();
        const form = event.currentTarget;
        send(() => onSubmit(form));
      }}
    >
      {children}
      {same !== undefined && <SameElsewhere same={same} />}
      <div class="actions">
        {before}
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button class={isDangerous ? 'danger' : 'primary'} type="submit" disabled={isOff || isSending}>
          {button}
        </button>
      </div>
    </form>
  );
}

/** What fields of a draft have in common: what stands in them, why the API refused it (`path` names it there), a change. */
export function fieldsOf<Draft>(
  prefix: string,
  draft: Draft,
  set: (part: Partial<Draft>) => void,
  why: (path: string) => string = () => '',
) {
  return (name: keyof Draft & string, path: string = name) => ({
    id: `${prefix}-${name}`,
    value: String(draft[name]),
    why: why(path),
    onInput: (value: string) => set({ [name]: value } as Partial<Draft>),
  });
}

/** A field with what the API expects of it, when it refused the value. */
export function Field(props: {
  id: string;
  label: string;
  value: string;
  why: string;
  help?: ComponentChildren;
  /** Of a field with several lines; one line without it. */
  rows?: number;
  onInput: (value: string) => void;
}) {
  const { id, label, value, why, help, rows, onInput } = props;
  const same = { id, value, spellcheck: false, 'aria-invalid': why !== '', 'aria-describedby': `${id}-help` };
  return (
    <div>
      <label for={id}>{label}</label>
      {rows === undefined ? (
        <input {...same} autocomplete="off" onInput={(event) => onInput(event.currentTarget.value)} />
      ) : (
        <textarea {...same} class="code" rows={rows} onInput={(event) => onInput(event.currentTarget.value)} />
      )}
      <Help id={`${id}-help`} why={why} help={help} />
    </div>
  );
}

/** Why a form was refused, with what the API expects of fields that the form does not show. */
export function Refused({ refusal, others }: { refusal: Refusal; others: Refusal['fields'] }) {
  return (
    <>
      <Alert text={refusal.message} />
      {others.map(({ path, expected }) => (
        <p class="alert" key={path}>
          <code>{path}</code>: {expected}
        </p>
      ))}
    </>
  );
}

/** What a field is for, or what the API expects of it. */
export function Help({ id, why, help }: { id: string; why: string; help: ComponentChildren }) {
  return (
    <p class={why === '' ? 'help' : 'help wrong'} id={id}>
      {why === '' ? help : why}
    </p>
  );
}
