import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { callApi } from '../calls/call.ts';
import { attempt, note, tenant } from '../state.ts';
import { Alert, Dialog } from './controls.tsx';
import { DialogForm } from './form.tsx';
import type { Same } from '../same/same.ts';

/** Asks before something that cannot be undone, and does it. The children say what is lost. */
export function ConfirmDialog(props: {
  id: string;
  title: string;
  button: string;
  /** Unless it is false. */
  isDangerous?: boolean;
  same: Same;
  act: () => Promise<void>;
  close: () => void;
  children: ComponentChildren;
}) {
  const { id, title, button, isDangerous = true, same, act, close, children } = props;
  const [refusal, setRefusal] = useState('');
  return (
    <Dialog id={id} title={title} onClose={close}>
      <DialogForm
        button={button}
        isDangerous={isDangerous}
        same={same}
        onSubmit={() => attempt(act, setRefusal)}
        close={close}
      >
        {children}
        <Alert text={refusal} />
      </DialogForm>
    </Dialog>
  );
}

/** Asks before something is deleted, and deletes it. The children say what is lost. */
export function DeleteDialog(props: {
  title: string;
  /** Below /api/v1. */
  path: string;
  same: Same;
  /** Said when it is gone. */
  done?: string;
  children: ComponentChildren;
  close: () => void;
  onDeleted: () => void;
}) {
  const { title, path, same, done = 'Deleted', children, close, onDeleted } = props;
  async function remove(): Promise<void> {
    await callApi(tenant.value, 'DELETE', path);
    note.value = done;
    onDeleted();
  }
  return (
    <ConfirmDialog id="delete" title={title} button="Delete" same={same} act={remove} close={close}>
      {children}
    </ConfirmDialog>
  );
}
