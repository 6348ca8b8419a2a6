import type { CreateWebhook, WebhookRecord, WebhookWithSecret } from '../../../wire/records.ts';
import { useState } from 'preact/hooks';
import { callApi } from '../calls/call.ts';
import { Alert, CopyField, Dialog, Empty, OnceDialog, RowButton, Table, Time } from '../parts/controls.tsx';
import { ConfirmDialog, DeleteDialog } from '../parts/delete-dialog.tsx';
import { DialogForm, Field, fieldsOf, Refused, useRefusal } from '../parts/form.tsx';
import { useRead } from '../parts/use-read.ts';
import { sameAddWebhook, sameRemoveWebhook, sameRotateWebhook } from '../same/same-lists.ts';
import { mayWrite, tenant } from '../state.ts';

const EMPTY = { url: '', events: '', name: '' };

function bodyOf({ url, events, name }: typeof EMPTY): CreateWebhook {
  const types = events.split(/[\s,]+/).filter((text) => text !== '');
  return { url, ...(types.length > 0 && { events: types }), ...(name !== '' && { name }) };
}

/** Asks where events go, and makes the webhook. */
function AddWebhook({ close, onMade }: { close: () => void; onMade: (made: WebhookWithSecret) => void }) {
  const [draft, setDraft] = useState(EMPTY);
  const { refusal, send } = useRefusal();
  const body = bodyOf(draft);
  const set = (part: Partial<typeof EMPTY>): void => setDraft((before) => ({ ...before, ...part }));
  const fieldOf = (path: string): string => path.replace(/\[\d+\]$/, '');
  const why = (name: string): string => refusal.fields.find(({ path }) => fieldOf(path) === name)?.expected ?? '';
  const of = fieldsOf('webhook', draft, set, why);
  async function add(): Promise<void> {
    onMade(await callApi<WebhookWithSecret>(tenant.value, 'POST', '/webhooks', body));
  }
  return (
    <Dialog id="add-webhook" title="Add webhook" onClose={close}>
      <DialogForm
        button="Add webhook"
        isOff={draft.url === ''}
        same={sameAddWebhook(body)}
        onSubmit={() => send(add)}
        close={close}
      >
        <Refused refusal={refusal} others={refusal.fields.filter(({ path }) => !(fieldOf(path) in EMPTY))} />
        <Field
          label="URL"
          help="Events go there by POST. It is https on port 443 of a public host, or what your operator allows."
          {...of('url')}
        />
        <Field label="Events" help="For example instance.ready, budget.spent. Empty: all." {...of('events')} />
        <Field label="Name" help="For people." {...of('name')} />
      </DialogForm>
    </Dialog>
  );
}

/** Milliseconds between two looks at how the deliveries go. */
const READ_MS = 5_000;

const titleOf = ({ name, id }: WebhookRecord): string => (name === '' ? id : name);

/** How the deliveries go, in words that say what to do. */
function Deliveries({ webhook: { delivering, dropped } }: { webhook: WebhookRecord }) {
  return (
    <>
      {delivering === null ? 'not known yet' : delivering.message}
      {delivering?.status === false && <span class="badge">{delivering.reason}</span>}
      {dropped > 0 && <span class="badge">{dropped} dropped</span>}
    </>
  );
}

function Row(props: { webhook: WebhookRecord; onRotate: () => void; onDelete: () => void }) {
  const { webhook, onRotate, onDelete } = props;
  const title = titleOf(webhook);
  return (
    <tr>
      <th scope="row">{title}</th>
      <td data-label="URL" class="long">
        <code>{webhook.url}</code>
      </td>
      <td data-label="Events">
        {(webhook.events ?? ['all']).map((type) => (
          <span class="chip" key={type}>
            {type}
          </span>
        ))}
      </td>
      <td data-label="Deliveries" class="long">
        <Deliveries webhook={webhook} />
      </td>
      <td data-label="Last">
        <Time at={webhook.last_delivered_at} absent="never" />
      </td>
      <td class="action">
        {mayWrite.value && (
          <div class="buttons">
            <button type="button" class="quiet" aria-label={`New secret of ${title}`} onClick={onRotate}>
              New secret
            </button>
            <RowButton verb="Delete" name={title} onClick={onDelete} />
          </div>
        )}
      </td>
    </tr>
  );
}

function SecretDialog({ secret, close }: { secret: string; close: () => void }) {
  return (
    <OnceDialog id="webhook-secret" title="Signing secret" close={close}>
      <p>
        Copy it now: no other answer has it. With it your receiver checks who sent an event, by a library of Standard
        Webhooks for example.
      </p>
      <CopyField id="signing-secret" label="Secret" text={secret} what="the secret" />
    </OnceDialog>
  );
}

function RotateDialog(props: { webhook: WebhookRecord; close: () => void; onMade: (made: WebhookWithSecret) => void }) {
  const { webhook, close, onMade } = props;
  async function rotate(): Promise<void> {
    onMade(await callApi<WebhookWithSecret>(tenant.value, 'POST', `/webhooks/${webhook.id}/secret`));
  }
  return (
    <ConfirmDialog
      id="rotate"
      title="Replace the secret?"
      button="Replace"
      same={sameRotateWebhook(webhook.id)}
      act={rotate}
      close={close}
    >
      <p>
        The old one signs nothing any more. Events that the receiver of <strong>{titleOf(webhook)}</strong> refuses
        until it has the new one is delivered again.
      </p>
    </ConfirmDialog>
  );
}

/** URLs of the tenant that Berth calls when something happens. */
export function WebhooksView() {
  const { value: list, trouble, change } = useRead<{ data: WebhookRecord[] }>('/webhooks', READ_MS);
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [rotating, setRotating] = useState<WebhookRecord>();
  const [leaving, setLeaving] = useState<WebhookRecord>();
  const set = (next: (before: readonly WebhookRecord[]) => WebhookRecord[]): void =>
    change(({ data, ...rest }) => ({ ...rest, data: next(data) }));
  return (
    <section aria-labelledby="webhooks-title">
      <div class="title">
        <div>
          <h1 id="webhooks-title">Webhooks</h1>
          <p>URLs of yours that Berth calls when an instance is ready, its GPU fails, or your budget is spent.</p>
        </div>
        {mayWrite.value && (
          <button class="primary" type="button" onClick={() => setAdding(true)}>
            Add webhook
          </button>
        )}
      </div>
      <Alert text={trouble} />
      {list !== undefined && (
        <div class="card flush">
          {list.data.length === 0 ? (
            <Empty title="No webhooks yet">
              <p>With one, your programs need not ask again and again what became of an instance.</p>
            </Empty>
          ) : (
            <Table title="Webhooks" columns={['Name', 'URL', 'Events', 'Deliveries', 'Last delivered']} actions>
              {list.data.map((one) => (
                <Row key={one.id} webhook={one} onRotate={() => setRotating(one)} onDelete={() => setLeaving(one)} />
              ))}
            </Table>
          )}
        </div>
      )}
      {isAdding && (
        <AddWebhook
          close={() => setAdding(false)}
          onMade={({ secret: made, ...webhook }) => {
            setAdding(false);
            set((data) => [...data, webhook]);
            setSecret(made);
          }}
        />
      )}
      {rotating !== undefined && (
        <RotateDialog
          webhook={rotating}
          close={() => setRotating(undefined)}
          onMade={({ secret: made }) => {
            setRotating(undefined);
            setSecret(made);
          }}
        />
      )}
      {secret !== undefined && <SecretDialog secret={secret} close={() => setSecret(undefined)} />}
      {leaving !== undefined && (
        <DeleteDialog
          title="Delete this webhook?"
          path={`/webhooks/${leaving.id}`}
          same={sameRemoveWebhook(tenant.value, leaving.id)}
          done="Webhook deleted"
          close={() => setLeaving(undefined)}
          onDeleted={() => {
            set((data) => data.filter(({ id }) => id !== leaving.id));
            setLeaving(undefined);
          }}
        >
          <p>
            Events that were not delivered to <strong>{titleOf(leaving)}</strong> yet are dropped.
          </p>
        </DeleteDialog>
      )}
    </section>
  );
}
