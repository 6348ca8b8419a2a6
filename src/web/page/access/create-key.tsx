import { useState } from 'preact/hooks';
import type { KeyRecord } from '../../key-record.ts';
import { callDashboard } from '../calls/call.ts';
import { Alert, Dialog } from '../parts/controls.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameMakeApiKey } from '../same/same.ts';
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

function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value : '';
}

/** The body of POST /keys for what was filled in. */
function bodyOf(form: FormData): { namespace: string; name: string; scopes: string[]; expires_at: string | null } {
  const days = textOf(form, 'expiry');
  return {
    namespace: tenant.value,
    name: textOf(form, 'name'),
    scopes: form.getAll('scope').map(String),
    expires_at: days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString(),
  };
}

/** Asks what the key is for, and makes it. */
export function CreateDialog({ close, onCreated }: { close: () => void; onCreated: (made: MadeKey) => void }) {
  const [refusal, setRefusal] = useState('');
  const [filled, setFilled] = useState<ReturnType<typeof bodyOf>>();
  async function create(form: FormData): Promise<void> {
    onCreated(await callDashboard<MadeKey>('POST', '/keys', bodyOf(form)));
  }
  return (
    <Dialog id="create" title="Create key" onClose={close}>
      <form
        autocomplete="off"
        onInput={(event) => setFilled(bodyOf(new FormData(event.currentTarget)))}
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
        {filled !== undefined && <SameElsewhere same={sameMakeApiKey(filled)} />}
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
