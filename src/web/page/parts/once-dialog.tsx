import type { ComponentChildren } from 'preact';
import { CopyButton, Dialog } from './controls.tsx';

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
