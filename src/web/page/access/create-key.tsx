import { useState } from 'preact/hooks';
import type { KeyRecord } from '../../key-record.ts';
import { callDashboard } from '../calls/call.ts';
import { Alert, Dialog } from '../parts/controls.tsx';
import { attempt, tenant } from '../state.ts';

const DAY_MS = 86_400_000;
const SCOPES = [
  ['compute:read', 'See offers, instances and SSH keys'],
  ['compute:write', 'Rent, change and delete'],
  ['models', 'Call the models'],
] as const;
const EXPIRIES = [
  ['7', 'in 7 days'],
  ['30', 'in 30 days'],
  ['90', 'in 90 days'],
  ['365', 'in a year'],
  ['', 'never'],
] as const;

type MadeKey = KeyRecord & { token: string };

/** Asks what the key is for, and makes it. */
export function CreateDialog({ close, onCreated }: { close: () => void; onCreated: (made: MadeKey) => void }) {
  const [refusal, setRefusal] = useState('');
  async function create(form: FormData): Promise<void> {
    const days = form.get('expiry');
    const body = {
      namespace: tenant.value,
      name: form.get('name'),
      scopes: form.getAll('scope'),
      expires_at: days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString(),
    };
    onCreated(await callDashboard<MadeKey>('POST', '/keys', body));
  }
  return (
    <Dialog id="create" title="Create key" onClose={close}>
      <form
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          void attempt(() => create(form), setRefusal);
        }}
      >
        <Alert text={refusal} />
        <label for="name">Name</label>
        <input id="name" name="name" maxLength={128} placeholder="What is it for?" />
        <fieldset>
          <legend>Scopes</legend>
          {SCOPES.map(([scope, help]) => (
            <label class="check" key={scope}>
              <input type="checkbox" name="scope" value={scope} defaultChecked />
              <span>
                <code>{scope}</code> {help}
              </span>
            </label>
          ))}
        </fieldset>
        <label for="expiry">Expires</label>
        <select id="expiry" name="expiry">
          {EXPIRIES.map(([days, text]) => (
            <option value={days} key={days} selected={days === '90'}>
              {text}
            </option>
          ))}
        </select>
        <div class="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button class="primary" type="submit">
            Create key
          </button>
        </div>
      </form>
    </Dialog>
  );
}
