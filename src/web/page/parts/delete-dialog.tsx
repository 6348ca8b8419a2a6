import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { callApi } from '../calls/call.ts';
import { attempt, note, tenant } from '../state.ts';
import { Alert, Dialog } from './controls.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import type { Same } from '../same/same.ts';

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
  const [refusal, setRefusal] = useState('');
  async function remove(): Promise<void> {
    await callApi(tenant.value, 'DELETE', path);
    note.value = done;
    onDeleted();
  }
  return (
    <Dialog id="delete" title={title} onClose={close}>
      {children}
      <Alert text={refusal} />
      <SameElsewhere same={same} />
      <div class="actions">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={() => void attempt(remove, setRefusal)}>
          Delete
        </button>
      </div>
    </Dialog>
  );
}
