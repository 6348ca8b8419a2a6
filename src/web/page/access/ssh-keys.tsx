import { useEffect, useState } from 'preact/hooks';
import type { SshKeyRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Alert, Empty, RowButton, Table, Time } from '../parts/controls.tsx';
import { DeleteDialog } from '../parts/delete-dialog.tsx';
import { useSending } from '../parts/form.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameAddKey, sameRemoveKey } from '../same/same.ts';
import { attempt, mayWrite, note, tenant } from '../state.ts';

/** The fields of a new key. A file that is dropped on them, or chosen, is read here and goes nowhere else. */
export function KeyForm({ onAdded }: { onAdded: (key: SshKeyRecord) => void }) {
  const [text, setText] = useState('');
  const [name, setName] = useState('');
  const [refusal, setRefusal] = useState('');
  const { isSending, send } = useSending();
  async function read(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    const content = await file.text();
    if (content.includes('PRIVATE KEY')) {
      setRefusal('This file is a private key, which nobody else may have. Choose the one that ends in .pub.');
      return;
    }
    setRefusal('');
    setText(content.trim());
    if (name === '') setName(file.name.replace(/\.pub$/, ''));
  }
  const shown = name === '' ? (text.split(/\s+/)[2] ?? 'key') : name;
  const body = { public_key: text.trim(), name: shown };
  async function add(): Promise<void> {
    const key = await callApi<SshKeyRecord>(tenant.value, 'POST', '/ssh-keys', body);
    setText('');
    setName('');
    note.value = 'Key added';
    onAdded(key);
  }
  return (
    <div
      class="drop"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void read(event.dataTransfer?.files[0]);
      }}
    >
      <Alert text={refusal} />
      <label for="public-key">Public key</label>
      <textarea
        id="public-key"
        rows={3}
        spellcheck={false}
        placeholder="ssh-ed25519 AAAA… you@laptop"
        value={text}
        aria-describedby="public-key-help"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p class="help" id="public-key-help">
        Paste the line of <code>~/.ssh/id_ed25519.pub</code>, or drop the file here. If you have no key yet:{' '}
        <code>ssh-keygen -t ed25519</code>
      </p>
      <div class="fields">
        <div>
          <label for="key-name">Name of the key</label>
          <input
            id="key-name"
            maxLength={128}
            value={name}
            autocomplete="off"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        <div>
          <label for="key-file">Public key file</label>
          <input
            id="key-file"
            type="file"
            accept=".pub"
            onChange={(event) => void read(event.currentTarget.files?.[0])}
          />
        </div>
      </div>
      {text !== '' && <SameElsewhere same={sameAddKey(tenant.value, body)} />}
      <div class="actions">
        <button
          type="button"
          class="primary"
          disabled={text === '' || isSending}
          onClick={() => send(() => attempt(add, setRefusal))}
        >
          Add key
        </button>
      </div>
    </div>
  );
}

export function readSshKeys(namespace: string): Promise<SshKeyRecord[]> {
  return callApi<{ data: SshKeyRecord[] }>(namespace, 'GET', '/ssh-keys').then(({ data }) => data);
}

/** The keys that open instances. */
export function KeysView() {
  const [keys, setKeys] = useState<readonly SshKeyRecord[]>();
  const [leaving, setLeaving] = useState<SshKeyRecord>();
  const read = () => attempt(async () => setKeys(await readSshKeys(tenant.value)));
  useEffect(() => void read(), []);
  return (
    <section aria-labelledby="ssh-keys-title">
      <div class="title">
        <div>
          <h1 id="ssh-keys-title">SSH keys</h1>
          <p>They open the instances of this project. An instance that names keys opens only for those.</p>
        </div>
      </div>
      {keys !== undefined && (
        <div class="card flush">
          {keys.length === 0 ? (
            <Empty title="No SSH keys yet">
              <p>
                Nobody can log in before there is one. Add the public part of your key; the private part never leaves
                you.
              </p>
            </Empty>
          ) : (
            <Table title="SSH keys" columns={['Name', 'Type', 'Fingerprint', 'Added']} actions>
              {keys.map((key) => (
                <tr key={key.id}>
                  <th scope="row">{key.name}</th>
                  <td data-label="Type">{key.type}</td>
                  <td data-label="Print" class="long">
                    <code>{key.fingerprint}</code>
                  </td>
                  <td data-label="Added">
                    <Time at={key.created_at} absent="" />
                  </td>
                  <td class="action">
                    {mayWrite.value && <RowButton verb="Delete" name={key.name} onClick={() => setLeaving(key)} />}
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </div>
      )}
      {mayWrite.value && (
        <section class="card" aria-labelledby="add-key-title">
          <h2 id="add-key-title">Add a key</h2>
          <KeyForm onAdded={(key) => setKeys((before = []) => [...before.filter(({ id }) => id !== key.id), key])} />
        </section>
      )}
      {leaving !== undefined && (
        <DeleteDialog
          title="Delete SSH key?"
          path={`/ssh-keys/${leaving.id}`}
          same={sameRemoveKey(tenant.value, leaving.id)}
          done="Key deleted"
          close={() => setLeaving(undefined)}
          onDeleted={() => {
            setKeys((before = []) => before.filter(({ id }) => id !== leaving.id));
            setLeaving(undefined);
          }}
        >
          <p>
            Sessions that <strong>{leaving.name}</strong> opened end within a second. It opens nothing any more.
          </p>
        </DeleteDialog>
      )}
    </section>
  );
}
