import { costSoFar } from '../../../wire/cost-so-far.ts';
import type { InstanceRecord, UsageAnswer } from '../../../wire/records.ts';
import type { ComponentChildren } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import { useFollow } from '../calls/follow.ts';
import { Alert, Link } from '../parts/controls.tsx';
import { duration, gpus, localTimes, memory, money, priceText, titleOf } from '../parts/words.ts';
import { note, now, spent } from '../state.ts';
import { useRead } from '../parts/use-read.ts';
import { Actions } from './actions.tsx';
import { Charts } from './charts.tsx';
import { Connect } from './connect.tsx';
import { History } from './history.tsx';
import { State } from './list.tsx';
import { Log } from './log.tsx';
import { Startup } from './stages.tsx';

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** What it has cost, costs in an hour, and will have cost when its longest time is over. */
function Money({ instance }: { instance: InstanceRecord }) {
  const { price_per_hour: price, currency, usage, billed_since: since, expires_at: end } = instance;
  const code = currency ?? usage?.currency;
  if (!code) return <>–</>;
  const soFar = money(costSoFar(instance, now.value), code, 4);
  return (
    <>
      {price === null ? soFar : `${soFar} · ${priceText(price, code)} an hour`}
      {since !== null && end !== null && (
        <span class="soft block">at most {money(costSoFar(instance, Date.parse(end)), code)} when it ends</span>
      )}
    </>
  );
}

function Expiry({
  instance: { expires_at: at, on_expiry: what, max_duration: longest, disk_persistent: kept },
}: {
  instance: InstanceRecord;
}) {
  if (at === null) return <>{longest === null ? 'No limit' : `${longest} after its container first runs`}</>;
  const left = Date.parse(at) - now.value;
  const stopped = kept === false ? 'stopped, disk lost' : 'stopped, disk kept';
  return (
    <>
      {left > 0 ? `in ${duration(left)}` : 'now'}: {what === 'delete' ? 'deleted' : stopped}
    </>
  );
}

function Facts({ instance }: { instance: InstanceRecord }) {
  const { gpu_count: count, gpu_memory_mb: gpuMemory, isolation, disk_gb: disk, disk_persistent: kept } = instance;
  return (
    <dl class="facts">
      <Fact name="GPUs">
        {gpus(instance)}
        {gpuMemory !== null && gpuMemory > 0 && `, ${memory(gpuMemory)}${count > 1 ? ' each' : ''}`}
        {isolation === 'time_sliced' && ", time-sliced: other tenants share this GPU's memory"}
        {isolation === 'mig' && ', a MIG slice'}
      </Fact>
      <Fact name="Cost so far">
        <Money instance={instance} />
      </Fact>
      <Fact name="Type">{instance.type === 1 ? 'Interruptible' : 'On demand'}</Fact>
      <Fact name="Image">
        <code>{instance.template_image}</code>
      </Fact>
      <Fact name="Disk">
        {disk === null ? 'Image size' : `${disk} GB`}
        {kept === false && ', lost at a stop'}
      </Fact>
      <Fact name="Node">{instance.node ?? '–'}</Fact>
      <Fact name="Ends">
        <Expiry instance={instance} />
      </Fact>
      <Fact name="Id">
        <code>{instance.id}</code>
      </Fact>
    </dl>
  );
}

function Whole({ instance }: { instance: InstanceRecord }) {
  const { message, warnings, simulated } = instance;
  return (
    <>
      <div class="title">
        <div>
          <h1 id="instance-title">{titleOf(instance)}</h1>
          <p>
            <State instance={instance} /> {simulated && <span class="chip">simulated</span>}
          </p>
        </div>
        <Actions instance={instance} />
      </div>
      {/* Of one that runs there is nothing to say but that. */}
      {message !== '' && instance.reason !== 'Running' && <p class="said">{localTimes(message, now.value)}</p>}
      {warnings.map((warning) => (
        <p class="warning" key={warning}>
          {localTimes(warning.replace(/^install_monitoring\b/, 'Monitoring'), now.value)}
        </p>
      ))}
      <Connect instance={instance} />
      <div class="columns">
        <section class="card" aria-labelledby="about-title">
          <h2 id="about-title">About</h2>
          <Facts instance={instance} />
        </section>
        <Startup instance={instance} />
      </div>
      <Charts instance={instance} />
      <Log instance={instance} />
      <History instance={instance} />
    </>
  );
}

/** Milliseconds. The record of the last start is written some seconds after it ended. */
const BILL_EVERY_MS = 5000;

/** What it cost in all, by the bill. */
function Bill({ instance: { id, created_at: created } }: { instance: InstanceRecord }) {
  const [to] = useState(() => new Date().toISOString().slice(0, 10));
  const path = `/usage?from=${created.slice(0, 10)}&to=${to}&group=instance`;
  const items = useRead<UsageAnswer>(path, BILL_EVERY_MS).value?.items.filter(({ group }) => group === id) ?? [];
  if (items.length === 0) return null;
  const amounts = items.map(({ cost, currency }) => money(cost, currency, 4)).join(' + ');
  return (
    <p>
      It cost <strong>{amounts}</strong>
      {items.some(({ open }) => open) ? ' so far.' : ' in all.'}
    </p>
  );
}

/** One instance, live. */
export function InstanceView({ id }: { id: string }) {
  const [instance, setInstance] = useState<InstanceRecord>();
  const [isGone, setGone] = useState(false);
  const onEvent = useCallback(({ type, data }: { type: string; data: unknown }) => {
    if (type === 'deleted') {
      note.value = '';
      setGone(true);
    } else {
      const found = data as InstanceRecord;
      setInstance((before) => {
        if (before !== undefined && before.billed_since !== found.billed_since) spent();
        return found;
      });
    }
  }, []);
  const trouble = useFollow(isGone ? '' : `/instances/${encodeURIComponent(id)}`, onEvent);
  return (
    <section aria-labelledby="instance-title">
      <p class="crumbs">
        <Link to="/dashboard">Instances</Link> / <code>{id}</code>
      </p>
      <Alert text={isGone ? '' : trouble} />
      {isGone ? (
        <div class="card empty">
          <h1 id="instance-title">This instance is gone</h1>
          <p>Its GPUs are free again, and its bill is closed.</p>
          {instance !== undefined && <Bill instance={instance} />}
          <Link to="/dashboard">Back to the instances</Link>
        </div>
      ) : instance === undefined ? (
        <h1 id="instance-title" class="hidden">
          Instance {id}
        </h1>
      ) : (
        <Whole instance={instance} />
      )}
    </section>
  );
}
