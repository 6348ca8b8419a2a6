import type { FoundOffer } from '../../../wire/records.ts';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { CallError, messageOf } from '../calls/call.ts';
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
    }
  }
  return { refusal, send };
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
