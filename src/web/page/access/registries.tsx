import { useState } from 'preact/hooks';
import type { RegistryRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Alert, Empty, RowButton, Table, Time } from '../parts/controls.tsx';
import { DeleteDialog } from '../parts/delete-dialog.tsx';
import { Field, fieldsOf, useSending } from '../parts/form.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameAddRegistry, sameRemoveRegistry } from '../same/same-lists.ts';
import { useRead } from '../parts/use-read.ts';
import { attempt, mayWrite, note, tenant } from '../state.ts';

const EMPTY = { name: '', server: '', username: '', password: '' };

/** Takes the credentials. The password leaves the page once, in the call, and the form forgets it then. */
function AddForm({ onAdded }: { onAdded: (added: RegistryRecord) => void }) {
  const [draft, setDraft] = useState(EMPTY);
  const [refusal, setRefusal] = useState('');
  const { isSending, send } = useSending();
  const set = (part: Partial<typeof EMPTY>): void => setDraft((before) => ({ ...before, ...part }));
  const of = fieldsOf('registry', draft, set);
  async function add(): Promise<void> {
    const added = await callApi<RegistryRecord>(tenant.value, 'POST', '/registries', draft);
    setDraft(EMPTY);
    note.value = 'Credentials added';
    onAdded(added);
  }
  return (
    <form
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        send(() => attempt(add, setRefusal));
      }}
    >
      <Alert text={refusal} />
      <div class="fields">
        <Field label="Name" help="Instances and templates name it: small letters, digits and -." {...of('name')} />
        <Field
          label="Registry"
          help="As images name it, for example ghcr.io. Docker Hub is docker.io."
          {...of('server')}
        />
        <Field label="User name" {...of('username')} />
        <div>
          <label for="registry-password">Password or token</label>
          <input
            id="registry-password"
            type="password"
            value={draft.password}
            autocomplete="new-password"
            spellcheck={false}
            aria-describedby="registry-password-help"
            onInput={(event) => set({ password: event.currentTarget.value })}
          />
          <p class="help" id="registry-password-help">
            Give one that may only pull. Neither this page nor a key can read it again.
          </p>
        </div>
      </div>
      <SameElsewhere same={sameAddRegistry(draft)} />
      <div class="actions">
        <button class="primary" type="submit" disabled={isSending || Object.values(draft).some((text) => text === '')}>
          Add registry
        </button>
      </div>
    </form>
  );
}

function List({ list, onDelete }: { list: readonly RegistryRecord[]; onDelete: (one: RegistryRecord) => void }) {
  return (
    <Table title="Registries" columns={['Name', 'Registry', 'User name', 'Added']} actions>
      {list.map((one) => (
        <tr key={one.id}>
          <th scope="row">{one.name}</th>
          <td data-label="Registry" class="long">
            <code>{one.server}</code>
          </td>
          <td data-label="User" class="long">
            {one.username}
          </td>
          <td data-label="Added">
            <Time at={one.created_at} absent="" />
          </td>
          <td class="action">
            {mayWrite.value && <RowButton verb="Delete" name={one.name} onClick={() => onDelete(one)} />}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** The logins at registries, from which private images come. */
export function RegistriesView() {
  const { value: list, trouble, change } = useRead<{ data: RegistryRecord[] }>('/registries');
  const [leaving, setLeaving] = useState<RegistryRecord>();
  return (
    <section aria-labelledby="registries-title">
      <div class="title">
        <div>
          <h1 id="registries-title">Registries</h1>
          <p>Logins with which nodes fetch your private images.</p>
        </div>
      </div>
      <Alert text={trouble} />
      {list !== undefined && (
        <div class="card flush">
          {list.data.length === 0 ? (
            <Empty title="No registries yet">
              <p>
                Public images need none. For a private one, add the login of its registry, and name it in a template or
                in the field <code>registry</code> of a call.
              </p>
            </Empty>
          ) : (
            <List list={list.data} onDelete={setLeaving} />
          )}
        </div>
      )}
      {mayWrite.value && (
        <section class="card" aria-labelledby="add-registry-title">
          <h2 id="add-registry-title">Add a registry</h2>
          <AddForm onAdded={(added) => change(({ data, ...rest }) => ({ ...rest, data: [...data, added] }))} />
        </section>
      )}
      {leaving !== undefined && (
        <DeleteDialog
          title="Delete this login?"
          path={`/registries/${leaving.name}`}
          same={sameRemoveRegistry(tenant.value, leaving.name)}
          close={() => setLeaving(undefined)}
          onDeleted={() => {
            change(({ data, ...rest }) => ({ ...rest, data: data.filter(({ id }) => id !== leaving.id) }));
            setLeaving(undefined);
          }}
        >
          <p>
            Running instances keep running. Those that name <strong>{leaving.name}</strong> cannot start again, until
            there is another login of this name.
          </p>
        </DeleteDialog>
      )}
    </section>
  );
}
