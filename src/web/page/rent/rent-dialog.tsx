import { hasPlace } from '../../../wire/has-place.ts';
import { hourlyPrice } from '../../../wire/hourly-price.ts';
import type {
  CreateInstance,
  FoundOffer,
  InstanceRecord,
  SshKeyRecord,
  TemplateListItem,
} from '../../../wire/records.ts';
import { useEffect, useRef, useState } from 'preact/hooks';
import { KeyForm, readSshKeys } from '../access/ssh-keys.tsx';
import { CallError, callOnce } from '../calls/call.ts';
import { Dialog } from '../parts/controls.tsx';
import { DialogForm, Field, fieldsOf, Help, Refused, useRefusal } from '../parts/form.tsx';
import { useRead } from '../parts/use-read.ts';
import { cpus, gpuWords, memory, money, plainly, priceText, shortGpu } from '../parts/words.ts';
import { sameRent } from '../same/same.ts';
import { attempt, go, note, tenant } from '../state.ts';
import { RegistryField } from '../templates/template-dialog.tsx';
import { ImageField } from './image-field.tsx';
import { BLANK, bodyOf, hoursOf, type Order } from './order.ts';
import { Variables } from './variables.tsx';

type Set = (part: Partial<Order>) => void;

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
      <Help id="rent-template-help" why={why} help="Your entries here override it." />
    </div>
  );
}

function Keys({ order, set }: { order: Order; set: Set }) {
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
      {keys !== undefined && keys.length > 0 && <p class="help">None chosen: all keys of the project open it.</p>}
      {keys?.length === 0 && <p class="help">Add an SSH key to log in.</p>}
      <details open={keys?.length === 0}>
        <summary>Add a key</summary>
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

/** Times that people choose most. */
const TIMES = ['1h', '4h', '12h', '24h'];

type Of = ReturnType<typeof fieldsOf<Order>>;

/** When it ends, and what follows then. */
function Ending({ order, set, of }: { order: Order; set: Set; of: Of }) {
  const { longest, idle, expiry } = order;
  return (
    <>
      <div class="fields">
        <div>
          <Field
            label="Stop after"
            help="For example 90m or 12h. Empty: no limit."
            {...of('longest', 'max_duration')}
          />
          <div class="buttons" role="group" aria-label="Common times">
            {TIMES.map((time) => (
              <button
                type="button"
                class="small"
                key={time}
                aria-pressed={longest === time}
                onClick={() => set({ longest: longest === time ? '' : time })}
              >
                {time}
              </button>
            ))}
          </div>
        </div>
        <Field
          label="Stop when idle for"
          help="Idle means without a session. Empty: no limit."
          {...of('idle', 'idle_timeout')}
        />
      </div>
      {longest + idle !== '' && (
        <fieldset class="choice">
          <legend>Then</legend>
          <label class="check">
            <input type="radio" name="expiry" checked={expiry === 'stop'} onChange={() => set({ expiry: 'stop' })} />
            <span>Stop it, and keep a disk that outlives a stop</span>
          </label>
          <label class="check">
            <input
              type="radio"
              name="expiry"
              checked={expiry === 'delete'}
              onChange={() => set({ expiry: 'delete' })}
            />
            <span>Delete it</span>
          </label>
        </fieldset>
      )}
    </>
  );
}

/** What it runs. */
function Program({ order, set, of }: { order: Order; set: Set; of: Of }) {
  return (
    <>
      <label for="rent-runtype">Mode</label>
      <select
        id="rent-runtype"
        value={order.runtype}
        onChange={(event) => set({ runtype: event.currentTarget.value as Order['runtype'] })}
      >
        <option value="">{order.template === '' ? 'SSH' : 'As the template says'}</option>
        {order.template !== '' && <option value="ssh">SSH</option>}
        <option value="jupyter">Jupyter and SSH</option>
        <option value="args">The program of the image</option>
      </select>
      {order.runtype === 'args' ? (
        <div class="fields">
          <Field
            rows={3}
            label="Command"
            help="One word on each line. Empty: the image's entrypoint."
            {...of('command')}
          />
          <Field rows={3} label="Arguments" help="One word on each line." {...of('args')} />
        </div>
      ) : (
        <Field rows={3} label="Script at the start" help="Runs after each start." {...of('script', 'on_start')} />
      )}
    </>
  );
}

const CHECKS: readonly { name: 'monitoring' | 'asRoot' | 'restarts' | 'waits'; says: string }[] = [
  { name: 'monitoring', says: 'Measure load and memory of the GPUs, for charts on its page' },
  { name: 'asRoot', says: 'Be root. In an image with a user of its own, sudo does nothing' },
  { name: 'restarts', says: 'Restart on healthy GPUs when a GPU fails' },
  { name: 'waits', says: 'Queue when no place is free' },
];

function More({ order, set, of, isOpen }: { order: Order; set: Set; of: Of; isOpen: boolean }) {
  return (
    <details open={isOpen}>
      <summary>More</summary>
      <Program order={order} set={set} of={of} />
      <Field
        rows={2}
        label="Ports"
        help="One on each line, with a name if you like: 8000 api, or 53/udp"
        {...of('ports')}
      />
      <Field
        label="Highest price"
        help="An hour, also of later starts. Empty: what you see now."
        {...of('highest', 'max_price_per_hour')}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={order.diskPolicy === 'retain'}
          onChange={(event) => set({ diskPolicy: event.currentTarget.checked ? 'retain' : 'delete' })}
        />
        <span>Keep the disk when the instance is deleted</span>
      </label>
      {CHECKS.map(({ name, says }) => (
        <label class="check" key={name}>
          <input
            type="checkbox"
            checked={order[name]}
            onChange={(event) => set({ [name]: event.currentTarget.checked })}
          />
          <span>{says}</span>
        </label>
      ))}
    </details>
  );
}

/** What the API may refuse of fields behind "More". */
const BEHIND = ['runtype', 'command', 'args', 'on_start', 'ports', 'max_price_per_hour'];
/** What it may refuse of fields that are always there. */
const BEFORE = ['name', 'template_id', 'template_image', 'disk_gb', 'max_duration', 'idle_timeout', 'env'];

function isAt(path: string, field: string): boolean {
  return path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`);
}

/** What the chosen time costs; without one, what a day does. */
function Estimate({ order, perHour, currency }: { order: Order; perHour: number; currency: string }) {
  const hours = hoursOf(order.longest);
  return (
    <p class="estimate" role="status">
      {hours === undefined ? (
        <>
          No limit · <strong>{money(perHour * 24, currency)}</strong> a day
        </>
      ) : (
        <>
          {order.longest} at most · about <strong>{money(perHour * hours, currency)}</strong>
        </>
      )}
    </p>
  );
}

/** Rents. The same order, sent again because its answer was lost, rents nothing twice. */
function useRent(body: CreateInstance): () => Promise<InstanceRecord> {
  const sent = useRef({ order: '', key: '' });
  return async () => {
    const order = JSON.stringify(body);
    if (sent.current.order !== order) sent.current = { order, key: crypto.randomUUID() };
    try {
      return await callOnce<InstanceRecord>(tenant.value, '/instances', body, sent.current.key);
    } catch (error) {
      // What the key stands for was deleted meanwhile.
      if (error instanceof CallError && error.code === 'idempotency_conflict') sent.current = { order: '', key: '' };
      throw error;
    }
  };
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
    ...BLANK,
    image: props.image,
    template: props.template,
    monitoring: !offer.simulated,
    waits: !hasPlace(offer),
  });
  const { refusal, send } = useRefusal();
  const set: Set = (part) => setOrder((before) => ({ ...before, ...part }));
  const body = bodyOf(order, offer);
  const place = useRent(body);
  async function rent(): Promise<void> {
    const { id, name } = await place();
    close();
    go(`/dashboard/instances/${id}`);
    note.value = `Rented ${name ?? id}`;
  }
  const why = (at: string): string =>
    refusal.fields
      .filter(({ path }) => isAt(path, at))
      .map(({ path, expected }) => plainly(path, expected, String(offer.disk_gb_max)))
      .join(' ');
  const of = fieldsOf('rent', order, set, why);
  const others = refusal.fields.filter(({ path }) => ![...BEFORE, ...BEHIND].some((field) => isAt(path, field)));
  // What is wrong stands at each field.
  const message = refusal.fields.length > others.length ? 'Correct the fields that are marked.' : refusal.message;
  const perHour = hourlyPrice(offer, order.type === 1);
  const what = gpuWords(offer.gpu_count, offer.gpu_name, offer.mig_profile);
  return (
    <Dialog id="rent" title={`Rent ${what}`} onClose={close}>
      <DialogForm
        button={`Rent for ${priceText(perHour, price.currency)} an hour`}
        same={sameRent(tenant.value, body)}
        onSubmit={() => send(rent)}
        close={close}
        before={<Estimate order={order} perHour={Number(perHour)} currency={price.currency} />}
      >
        <p class="soft">
          {memory(offer.gpu_memory_mb)} a GPU · {cpus(offer.cpu_cores)} · {memory(offer.memory_mb)}
          {offer.simulated && ' · simulated: runs no program'}
        </p>
        <Refused refusal={{ ...refusal, message }} others={others} />
        {refusal.alternatives.length > 0 && (
          <section aria-label="Alternatives">
            <h3>Free now</h3>
            <div class="buttons alternatives">
              {refusal.alternatives.map((other) => (
                <button type="button" key={other.id} onClick={() => choose(other)}>
                  {gpuWords(other.gpu_count, shortGpu(other.gpu_name), other.mig_profile)} ·{' '}
                  {priceText(other.price_per_hour.on_demand, other.price_per_hour.currency)}
                </button>
              ))}
            </div>
          </section>
        )}
        <fieldset class="choice">
          <legend>Price</legend>
          <label class="check">
            <input type="radio" name="type" checked={order.type === 0} onChange={() => set({ type: 0 })} />
            <span>On demand, {priceText(price.on_demand, price.currency)} an hour: it stays until you end it</span>
          </label>
          <label class="check">
            <input type="radio" name="type" checked={order.type === 1} onChange={() => set({ type: 1 })} />
            <span>
              Interruptible, {priceText(price.interruptible, price.currency)} an hour: others may take the GPUs. It
              comes back by itself, with its files where its disk is not on the node
            </span>
          </label>
        </fieldset>
        <div class="fields">
          <Field label="Name" help="Empty: its id." {...of('name')} />
          <TemplateField value={order.template} why={why('template_id')} onChange={(template) => set({ template })} />
        </div>
        <ImageField offer={offer} hasTemplate={order.template !== ''} field={of('image', 'template_image')} />
        <div class="fields">
          <Field
            label="Disk in GB"
            help={`At most ${offer.disk_gb_max.toLocaleString()}. Empty: the size that the image has.`}
            {...of('disk', 'disk_gb')}
          />
          <RegistryField id="rent-registry" value={order.registry} onChange={(registry) => set({ registry })} />
        </div>
        <Ending order={order} set={set} of={of} />
        <Variables variables={order.variables} why={why('env')} onChange={(variables) => set({ variables })} />
        <Keys order={order} set={set} />
        <More order={order} set={set} of={of} isOpen={BEHIND.some((field) => why(field) !== '')} />
      </DialogForm>
    </Dialog>
  );
}
