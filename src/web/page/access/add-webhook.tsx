import { useState } from 'preact/hooks';
import type { CreateWebhook, WebhookWithSecret } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Dialog } from '../parts/controls.tsx';
import { Field, Refused } from '../parts/field.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameAddWebhook } from '../same/same-lists.ts';
import { useRefusal } from '../parts/use-refusal.ts';
import { tenant } from '../state.ts';

const EMPTY = { url: '', events: '', name: '' };

function bodyOf({ url, events, name }: typeof EMPTY): CreateWebhook {
  const types = events.split(/[\s,]+/).filter((text) => text !== '');
  return { url, ...(types.length > 0 && { events: types }), ...(name !== '' && { name }) };
}

/** Asks where events go, and makes the webhook. */
export function AddWebhook({ close, onMade }: { close: () => void; onMade: (made: WebhookWithSecret) => void }) {
  const [draft, setDraft] = useState(EMPTY);
  const { refusal, send } = useRefusal();
  const body = bodyOf(draft);
  const set = (part: Partial<typeof EMPTY>): void => setDraft((before) => ({ ...before, ...part }));
  const fieldOf = (path: string): string => path.replace(/\[\d+\]$/, '');
  const why = (name: string): string => refusal.fields.find(({ path }) => fieldOf(path) === name)?.expected ?? '';
  async function add(): Promise<void> {
    onMade(await callApi<WebhookWithSecret>(tenant.value, 'POST', '/webhooks', body));
  }
  return (
    <Dialog id="add-webhook" title="Add webhook" onClose={close}>
      <form
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          void send(add);
        }}
      >
        <Refused refusal={refusal} others={refusal.fields.filter(({ path }) => !(fieldOf(path) in EMPTY))} />
        <Field
          id="webhook-url"
          label="URL"
          value={draft.url}
          why={why('url')}
          help="Events go there by POST. It is https on port 443 of a public host, or what your operator allows."
          onInput={(url) => set({ url })}
        />
        <Field
          id="webhook-events"
          label="Events"
          value={draft.events}
          why={why('events')}
          help="For example instance.ready, budget.spent. Empty: all."
          onInput={(events) => set({ events })}
        />
        <Field
          id="webhook-name"
          label="Name"
          value={draft.name}
          why={why('name')}
          help="For people."
          onInput={(name) => set({ name })}
        />
        <SameElsewhere same={sameAddWebhook(body)} />
        <div class="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button class="primary" type="submit" disabled={draft.url === ''}>
            Add webhook
          </button>
        </div>
      </form>
    </Dialog>
  );
}
