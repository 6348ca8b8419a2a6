import { useEffect, useState } from 'preact/hooks';
import type { KeyRecord } from '../../key-record.ts';
import { callDashboard } from '../calls/call.ts';
import { Alert, CopyField, Dialog, Empty, OnceDialog, RowButton, Table, Time } from '../parts/controls.tsx';
import { ConfirmDialog } from '../parts/delete-dialog.tsx';
import { DialogForm } from '../parts/form.tsx';
import { sameMakeApiKey, sameRevokeApiKey } from '../same/same.ts';
import { attempt, note, session, tenant } from '../state.ts';
import { keyLives } from './key-lives.ts';

const DAY_MS = 86_400_000;
const SCOPES = [
  ['compute:read', 'See offers, instances and SSH keys'],
  ['compute:write', 'Rent, change and delete'],
  ['models', 'Call the models'],
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
function CreateDialog({ close, onCreated }: { close: () => void; onCreated: (made: MadeKey) => void }) {
  const [refusal, setRefusal] = useState('');
  const [filled, setFilled] = useState<ReturnType<typeof bodyOf>>();
  const { choices, chosen } = keyLives(session.value?.key_days ?? { default: 0, max: 0 });
  async function create(form: FormData): Promise<void> {
    onCreated(await callDashboard<MadeKey>('POST', '/keys', bodyOf(form)));
  }
  return (
    <Dialog id="create" title="Create key" onClose={close}>
      <DialogForm
        button="Create key"
        same={filled && sameMakeApiKey(filled)}
        onInput={(form) => setFilled(bodyOf(new FormData(form)))}
        onSubmit={(form) => attempt(() => create(new FormData(form)), setRefusal)}
        close={close}
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
          {choices.map(([days, text]) => (
            <option value={days} key={days} selected={days === chosen}>
              {text}
            </option>
          ))}
        </select>
      </DialogForm>
    </Dialog>
  );
}

const titleOf = ({ name, id }: KeyRecord): string => (name === '' ? id : name);

function Row({ apiKey, onRevoke }: { apiKey: KeyRecord; onRevoke: () => void }) {
  const { state, prefix, scopes } = apiKey;
  return (
    <tr class={state}>
      <th scope="row">
        {titleOf(apiKey)} {state !== 'active' && <span class={`badge ${state}`}>{state}</span>}
      </th>
      <td data-label="Key">
        <code>{prefix}…</code>
      </td>
      <td data-label="Scopes">
        {scopes.map((scope) => (
          <span class="chip" key={scope}>
            {scope}
          </span>
        ))}
      </td>
      <td data-label="Created">
        <Time at={apiKey.created_at} absent="" />
      </td>
      <td data-label="Expires">
        <Time at={apiKey.expires_at} absent="never" />
      </td>
      <td data-label="Last used">
        <Time at={apiKey.last_used_at} absent="never" />
      </td>
      <td class="action">
        {state === 'active' && <RowButton verb="Revoke" name={titleOf(apiKey)} onClick={onRevoke} />}
      </td>
    </tr>
  );
}

function MadeDialog({ token, close }: { token: string; close: () => void }) {
  const curl = `curl -H 'Authorization: Bearer ${token}' ${location.origin}/api/v1/offers`;
  return (
    <OnceDialog id="made" title="Key created" close={close}>
      <p>Copy it now. It is not stored and cannot be shown again.</p>
      <CopyField id="made-token" label="Key" text={token} what="the key" />
      <CopyField id="made-curl" label="Try it" text={curl} what="the command" rows={4} />
    </OnceDialog>
  );
}

/** The API keys of the tenant. */
export function AccessView() {
  const [keys, setKeys] = useState<readonly KeyRecord[]>();
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<string>();
  const [leaving, setLeaving] = useState<KeyRecord>();
  const namespace = tenant.value;
  useEffect(() => {
    void attempt(async () => {
      const path = `/keys?namespace=${encodeURIComponent(namespace)}`;
      setKeys((await callDashboard<{ data: KeyRecord[] }>('GET', path)).data);
    });
  }, []);
  async function revoke({ id }: KeyRecord): Promise<void> {
    const path = `/keys/${namespace}/${encodeURIComponent(id)}/revoke`;
    const revoked = await callDashboard<KeyRecord>('POST', path);
    setKeys((before = []) => before.map((key) => (key.id === id ? revoked : key)));
    setLeaving(undefined);
    note.value = 'Key revoked';
  }
  return (
    <section class="access" aria-labelledby="keys-title">
      <div class="title">
        <div>
          <h1 id="keys-title">API keys</h1>
          <p>A key gives access to one project only.</p>
        </div>
        <button class="primary" type="button" onClick={() => setCreating(true)}>
          Create key
        </button>
      </div>
      <div class="card flush">
        {keys?.length === 0 && (
          <Empty title="No API keys">
            <p>
              <code>{namespace}</code> has no keys, or is no namespace. Create a key to call the API.
            </p>
          </Empty>
        )}
        {keys !== undefined && keys.length > 0 && (
          <Table title="API keys" columns={['Name', 'Key', 'Scopes', 'Created', 'Expires', 'Last used']} actions>
            {keys.map((key) => (
              <Row key={key.id} apiKey={key} onRevoke={() => setLeaving(key)} />
            ))}
          </Table>
        )}
      </div>
      {isCreating && (
        <CreateDialog
          close={() => setCreating(false)}
          onCreated={({ token, ...key }) => {
            setCreating(false);
            setKeys((before = []) => [key, ...before]);
            setMade(token);
          }}
        />
      )}
      {made !== undefined && <MadeDialog token={made} close={() => setMade(undefined)} />}
      {leaving !== undefined && (
        <ConfirmDialog
          id="revoke"
          title="Revoke key?"
          button="Revoke"
          same={sameRevokeApiKey(leaving.namespace, leaving.id)}
          act={() => revoke(leaving)}
          close={() => setLeaving(undefined)}
        >
          <p>
            Calls with <strong>{titleOf(leaving)}</strong> will fail within a second. This cannot be undone.
          </p>
        </ConfirmDialog>
      )}
    </section>
  );
}
