import { useEffect, useState } from 'preact/hooks';
import type { FoundOffer, InstanceRecord, SshKeyRecord } from '../../../wire/records.ts';
import { KeyForm, readSshKeys } from '../access/ssh-keys.tsx';
import { callApi } from '../calls/call.ts';
import { Dialog } from '../parts/controls.tsx';
import { Field, Refused } from '../parts/field.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameRent } from '../same/same.ts';
import { useRefusal } from '../parts/use-refusal.ts';
import { money } from '../parts/words.ts';
import { attempt, go, note, tenant } from '../state.ts';
import { TemplateField } from '../templates/template-field.tsx';
import { bodyOf, type Order } from './order.tsx';
import { OfferCard } from './offer-card.tsx';

function Keys({ order, set }: { order: Order; set: (part: Partial<Order>) => void }) {
  const [keys, setKeys] = useState<readonly SshKeyRecord[]>();
  useEffect(() => {
    void attempt(async () => setKeys(await readSshKeys(tenant.value)));
  }, []);
  const { keys: chosen } = order;
  return (
    <fieldset>
      <legend>SSH keys</legend>
      {keys?.map(({ id, name, fingerprint }) => (
        <label class="check" key={id}>
          <input
            type="checkbox"
            checked={chosen.includes(id)}
            onChange={(event) =>
              set({ keys: event.currentTarget.checked ? [...chosen, id] : chosen.filter((one) => one !== id) })
            }
          />
          <span>
            {name} <code class="soft">{fingerprint}</code>
          </span>
        </label>
      ))}
      {keys !== undefined && keys.length > 0 && <p class="help">None chosen: all keys of the namespace open it.</p>}
      {keys?.length === 0 && <p class="help">There is no key yet: paste one, or nobody can log in.</p>}
      <details open={keys?.length === 0}>
        <summary>Paste a key</summary>
        <KeyForm
          onAdded={(key) => {
            setKeys((before = []) => [...before.filter(({ id }) => id !== key.id), key]);
            if (chosen.length > 0) set({ keys: [...chosen, key.id] });
          }}
        />
      </details>
    </fieldset>
  );
}

/** What is rented, and what it costs, before the click. */
export function RentDialog(props: {
  offer: FoundOffer;
  image: string;
  /** The number of the template to begin with; empty for none. */
  template: string;
  close: () => void;
  choose: (offer: FoundOffer) => void;
}) {
  const { offer, close, choose } = props;
  const { price_per_hour: price } = offer;
  const [order, setOrder] = useState<Order>({
    type: 0,
    name: '',
    image: props.image,
    template: props.template,
    runtype: '',
    disk: '',
    longest: '',
    script: '',
    keys: [],
    waits: offer.available === 0,
  });
  const { refusal, send } = useRefusal();
  const [isSending, setSending] = useState(false);
  const set = (part: Partial<Order>): void => setOrder((before) => ({ ...before, ...part }));
  const body = bodyOf(order, offer);
  async function rent(): Promise<void> {
    setSending(true);
    try {
      const { id } = await callApi<InstanceRecord>(tenant.value, 'POST', '/instances', body);
      close();
      go(`/dashboard/instances/${id}`);
      note.value = 'Rented';
    } finally {
      setSending(false);
    }
  }
  const why = (path: string): string => refusal.fields.find((field) => field.path === path)?.expected ?? '';
  const others = refusal.fields.filter(
    ({ path }) => !['name', 'template_id', 'template_image', 'disk_gb', 'max_duration'].includes(path),
  );
  const costs = money(order.type === 0 ? price.on_demand : price.interruptible, price.currency);
  return (
    <Dialog id="rent" title={`Rent ${offer.gpu_count} × ${offer.gpu_name}`} onClose={close}>
      <form
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          void send(rent);
        }}
      >
        <Refused refusal={refusal} others={others} />
        {refusal.alternatives.length > 0 && (
          <section aria-label="Alternatives">
            <h3>Free now</h3>
            {refusal.alternatives.map((other) => (
              <OfferCard key={other.id} offer={other} onRent={() => choose(other)} />
            ))}
          </section>
        )}
        <fieldset class="choice">
          <legend>Price</legend>
          <label class="check">
            <input type="radio" name="type" checked={order.type === 0} onChange={() => set({ type: 0 })} />
            <span>On demand, {money(price.on_demand, price.currency)} an hour: it stays until you end it</span>
          </label>
          <label class="check">
            <input type="radio" name="type" checked={order.type === 1} onChange={() => set({ type: 1 })} />
            <span>
              Interruptible, {money(price.interruptible, price.currency)} an hour: others may take the GPUs; the disk
              stays and it comes back by itself
            </span>
          </label>
        </fieldset>
        <Field id="rent-name" label="Name" value={order.name} why={why('name')} onInput={(name) => set({ name })} />
        <TemplateField value={order.template} why={why('template_id')} onChange={(template) => set({ template })} />
        <Field
          id="rent-image"
          label="Image"
          value={order.image}
          why={why('template_image')}
          help={order.template === '' ? 'Empty: the default image.' : 'Empty: that of the template.'}
          onInput={(image) => set({ image })}
        />
        <div class="fields">
          <Field
            id="rent-disk"
            label="Disk in GB"
            value={order.disk}
            why={why('disk_gb')}
            help={`At most ${offer.disk_gb_max}.`}
            onInput={(disk) => set({ disk })}
          />
          <Field
            id="rent-longest"
            label="Longest time"
            value={order.longest}
            why={why('max_duration')}
            help="For example 12h. Empty: no end."
            onInput={(longest) => set({ longest })}
          />
        </div>
        <Keys order={order} set={set} />
        <details>
          <summary>More</summary>
          <label for="rent-runtype">What it runs</label>
          <select
            id="rent-runtype"
            value={order.runtype}
            onChange={(event) => set({ runtype: event.currentTarget.value as Order['runtype'] })}
          >
            <option value="">{order.template === '' ? 'A login' : 'As the template says'}</option>
            {order.template !== '' && <option value="ssh">A login</option>}
            <option value="jupyter">Jupyter and a login</option>
            <option value="args">The program of the image</option>
          </select>
          <label for="rent-script">Script at the start</label>
          <textarea
            id="rent-script"
            rows={3}
            spellcheck={false}
            value={order.script}
            onInput={(event) => set({ script: event.currentTarget.value })}
          />
          <label class="check">
            <input
              type="checkbox"
              checked={order.waits}
              onChange={(event) => set({ waits: event.currentTarget.checked })}
            />
            <span>Wait in line when no place is free</span>
          </label>
        </details>
        <SameElsewhere same={sameRent(tenant.value, body)} />
        <div class="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button class="primary" type="submit" disabled={isSending}>
            Rent for {costs} an hour
          </button>
        </div>
      </form>
    </Dialog>
  );
}
