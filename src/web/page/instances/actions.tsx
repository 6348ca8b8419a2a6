import { useState } from 'preact/hooks';
import type { InstanceRecord, UpdateInstance } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Alert, Dialog } from '../parts/controls.tsx';
import { sameChange, sameDelete } from '../same/same.ts';
import { DialogForm } from '../parts/form.tsx';
import { titleOf } from '../parts/words.ts';
import { attempt, mayWrite, note, now, tenant } from '../state.ts';
import { COSTS_FROM, diskAtStop, losesFilesAtStop } from './action-words.ts';

/** What a person may do with an instance. */
export type ActionName = 'rename' | 'extend' | 'price' | 'stop' | 'start' | 'delete';

interface Action {
  title: string;
  /** What the button of the dialog says. */
  button: string;
  says: string;
  done: string;
  isDangerous?: boolean;
  /** The field to fill in, its label and its value now. */
  field?: { name: 'name' | 'max_duration' | 'max_price_per_hour'; label: string; value: string; help: string };
  /** What PATCH sends; without it the instance is deleted. */
  body?: (value: string) => UpdateInstance;
}

function actionOf(name: ActionName, instance: InstanceRecord): Action {
  const actions: Record<ActionName, Action> = {
    rename: {
      title: 'Rename',
      button: 'Rename',
      says: 'The name is for people. The id stays, and so does the SSH login.',
      done: 'Renamed',
      field: { name: 'name', label: 'Name', value: instance.name ?? '', help: 'Empty: the id stands in its place.' },
      body: (value) => ({ name: value === '' ? null : value }),
    },
    extend: {
      title: 'Extend',
      button: 'Save',
      says: 'The longest time of each start, counted from when its container first ran. A longer time than now extends it.',
      done: 'Changed when it ends',
      field: {
        name: 'max_duration',
        label: 'Stop after',
        value: instance.max_duration ?? '',
        help: 'For example 90m or 12h. Empty: no limit.',
      },
      body: (value) => ({ max_duration: value === '' ? null : value }),
    },
    price: {
      title: 'Highest price',
      button: 'Save',
      says: 'The most that an hour of a later start may cost. Above it the instance waits. The price of a start that runs stays.',
      done: 'Changed its highest price',
      field: {
        name: 'max_price_per_hour',
        label: 'Highest price an hour',
        value: instance.max_price_per_hour ?? '',
        help: `In ${instance.currency ?? 'the currency of the offer'}. Empty: the price that was seen at first.`,
      },
      body: (value) => ({ max_price_per_hour: value === '' ? null : value }),
    },
    stop: {
      title: 'Stop this instance?',
      button: 'Stop',
      says: `Programs end and the GPUs are free for others. You pay no GPU time until you start it again, for which a place must be free. ${diskAtStop(instance)}`,
      done: `Stopping ${titleOf(instance)}`,
      isDangerous: losesFilesAtStop(instance),
      body: () => ({ state: 'stopped' }),
    },
    start: {
      title: 'Start this instance?',
      button: 'Start',
      says: `It needs a free place, and ${COSTS_FROM}.`,
      done: `Starting ${titleOf(instance)}`,
      body: () => ({ state: 'running' }),
    },
    delete: {
      title: 'Delete this instance?',
      button: 'Delete',
      says:
        instance.disk_policy === 'retain'
          ? 'Programs end and the instance is gone. Its disk is kept. This cannot be undone.'
          : 'Programs end, and the instance and its disk are gone. This cannot be undone.',
      done: `Deleting ${titleOf(instance)}`,
      isDangerous: true,
    },
  };
  return actions[name];
}

/** Asks for what the action needs, and does it. */
export function ActionDialog(props: { name: ActionName; instance: InstanceRecord; close: () => void }) {
  const { name, instance, close } = props;
  const { title, button, says, done, isDangerous, field, body } = actionOf(name, instance);
  const [value, setValue] = useState(field?.value ?? '');
  const [refusal, setRefusal] = useState('');
  const { id } = instance;
  const path = `/instances/${id}`;
  // To the second: the words to copy do not change while somebody selects them.
  const [openedAt] = useState(now.value);
  const same =
    body === undefined
      ? sameDelete(tenant.value, id)
      : sameChange({ namespace: tenant.value, id, now: openedAt }, body(value));
  async function act(): Promise<void> {
    await callApi(tenant.value, body === undefined ? 'DELETE' : 'PATCH', path, body?.(value));
    note.value = done;
    close();
  }
  return (
    <Dialog id="action" title={title} onClose={close}>
      <DialogForm
        button={button}
        isDangerous={isDangerous}
        same={same}
        onSubmit={() => attempt(act, setRefusal)}
        close={close}
      >
        <p>
          <strong>{titleOf(instance)}</strong>
        </p>
        <p>{says}</p>
        <Alert text={refusal} />
        {field !== undefined && (
          <>
            <label for="action-field">{field.label}</label>
            <input
              id="action-field"
              value={value}
              autocomplete="off"
              aria-describedby="action-help"
              onInput={(event) => setValue(event.currentTarget.value)}
            />
            <p class="help" id="action-help">
              {field.help}
            </p>
          </>
        )}
      </DialogForm>
    </Dialog>
  );
}

/** What the person may do with the instance now, with the words of the buttons. */
export function actionsOf(instance: Pick<InstanceRecord, 'state' | 'desired_state'>): readonly [ActionName, string][] {
  if (!mayWrite.value || instance.state === 'deleting') return [];
  return [
    ['rename', 'Rename'],
    ['extend', 'Extend'],
    ['price', 'Highest price'],
    instance.desired_state === 'stopped' ? ['start', 'Start'] : ['stop', 'Stop'],
    ['delete', 'Delete'],
  ];
}

/** The buttons of what the person may do with the instance. */
export function Actions({ instance }: { instance: InstanceRecord }) {
  const [open, setOpen] = useState<ActionName>();
  const names = actionsOf(instance);
  if (names.length === 0) return null;
  return (
    <div class="buttons">
      {names.map(([name, label]) => (
        <button
          type="button"
          key={name}
          class={name === 'delete' ? 'danger outline' : undefined}
          onClick={() => setOpen(name)}
        >
          {label}
        </button>
      ))}
      {open !== undefined && <ActionDialog name={open} instance={instance} close={() => setOpen(undefined)} />}
    </div>
  );
}
