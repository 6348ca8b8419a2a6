import { hasPlace } from '../../../wire/has-place.ts';
import type {
  CreateInstance,
  FoundOffer,
  InstanceRecord,
  SshKeyRecord,
  TemplateListItem,
} from '../../../wire/records.ts';
import { useEffect, useState } from 'preact/hooks';
import { KeyForm, readSshKeys } from '../access/ssh-keys.tsx';
import { callApi } from '../calls/call.ts';
import { Dialog } from '../parts/controls.tsx';
import { DialogForm, Field, fieldsOf, Help, Refused, useRefusal } from '../parts/form.tsx';
import { useRead } from '../parts/use-read.ts';
import { money } from '../parts/words.ts';
import { sameRent } from '../same/same.ts';
import { attempt, go, note, tenant } from '../state.ts';
import { OfferCard } from './offer-card.tsx';

/** What a person filled in. */
interface Order {
  type: 0 | 1;
  name: string;
  image: string;
  /** The number of a template; empty without one. */
  template: string;
  /** Empty: as the template says, and a login without one. */
  runtype: '' | 'ssh' | 'jupyter' | 'args';
  disk: string;
  longest: string;
  highest: string;
  script: string;
  keys: number[];
  asRoot: boolean;
  waits: boolean;
}

/** The body of POST /instances. What was left empty is left out; the API has the words for what is wrong. */
function bodyOf(order: Order, { id }: FoundOffer): CreateInstance {
  const { type, name, template, image, runtype, disk, longest, highest, script, keys, asRoot, waits } = order;
  return {
    ask_id: id,
    type,
    on_no_capacity: waits ? 'queue' : 'fail',
    ...(name !== '' && { name }),
    ...(template !== '' && { template_id: Number(template) }),
    ...(runtype !== '' && { runtype }),
    ...(image !== '' && { template_image: image }),
    ...(disk !== '' && { disk_gb: Number(disk) }),
    ...(longest !== '' && { max_duration: longest }),
    ...(highest !== '' && { max_price_per_hour: highest }),
    ...(script !== '' && { on_start: script }),
    ...(keys.length > 0 && { ssh_key_ids: keys }),
    ...(asRoot && { run_as_root: true }),
  };
}

/** Chooses one of the templates that the tenant may use. Says nothing where there is none. */
function TemplateField({ value, why, onChange }: { value: string; why: string; onChange: (value: string) => void }) {
  const { value: list } = useRead<{ data: TemplateListItem[] }>('/templates');
  if (list === undefined || list.data.length === 0) return null;
  return (
    <div>
      <label for="rent-template">Template</label>
      <select
        id="rent-template"
        value={value}
        aria-describedby="rent-template-help"
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        <option value="">None</option>
        {list.data.map(({ id, name, shared }) => (
          <option key={id} value={String(id)}>
            {name}
            {shared && ' (shared)'}
          </option>
        ))}
      </select>
      <Help id="rent-template-help" why={why} help="What you fill in below wins over it." />
    </div>
  );
}

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
      {keys?.length === 0 && <p class="help">Add an SSH key to log in.</p>}
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
    highest: '',
    script: '',
    keys: [],
    asRoot: false,
    waits: !hasPlace(offer),
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
  const of = fieldsOf('rent', order, set, why);
  const others = refusal.fields.filter(
    ({ path }) =>
      !['name', 'template_id', 'template_image', 'disk_gb', 'max_duration', 'max_price_per_hour'].includes(path),
  );
  const costs = money(order.type === 0 ? price.on_demand : price.interruptible, price.currency);
  return (
    <Dialog id="rent" title={`Rent ${offer.gpu_count} × ${offer.gpu_name}`} onClose={close}>
      <DialogForm
        button={`Rent for ${costs} an hour`}
        isOff={isSending}
        same={sameRent(tenant.value, body)}
        onSubmit={() => void send(rent)}
        close={close}
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
              Interruptible, {money(price.interruptible, price.currency)} an hour: others may take the GPUs. It comes
              back by itself, with its files where its disk is not on the node
            </span>
          </label>
        </fieldset>
        <Field label="Name" {...of('name')} />
        <TemplateField value={order.template} why={why('template_id')} onChange={(template) => set({ template })} />
        <Field
          label="Image"
          help={order.template === '' ? 'Empty: the default image.' : 'Empty: that of the template.'}
          {...of('image', 'template_image')}
        />
        <div class="fields">
          <Field label="Disk in GB" help={`At most ${offer.disk_gb_max}.`} {...of('disk', 'disk_gb')} />
          <Field label="Longest time" help="For example 12h. Empty: no end." {...of('longest', 'max_duration')} />
          <Field
            label="Highest price"
            help="An hour, also of later starts. Empty: what you see now."
            {...of('highest', 'max_price_per_hour')}
          />
        </div>
        <Keys order={order} set={set} />
        <details>
          <summary>More</summary>
          <label for="rent-runtype">Mode</label>
          <select
            id="rent-runtype"
            value={order.runtype}
            onChange={(event) => set({ runtype: event.currentTarget.value as Order['runtype'] })}
          >
            <option value="">{order.template === '' ? 'SSH' : 'As the template says'}</option>
            {order.template !== '' && <option value="ssh">SSH</option>}
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
              checked={order.asRoot}
              onChange={(event) => set({ asRoot: event.currentTarget.checked })}
            />
            <span>Be root. In an image with a user of its own, sudo does nothing</span>
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={order.waits}
              onChange={(event) => set({ waits: event.currentTarget.checked })}
            />
            <span>Wait in line when no place is free</span>
          </label>
        </details>
      </DialogForm>
    </Dialog>
  );
}
