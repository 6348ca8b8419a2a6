import { costSoFar } from '../../../wire/cost-so-far.ts';
import type { InstanceRecord } from '../../../wire/records.ts';
import type { ComponentChildren } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import { useFollow } from '../calls/follow.ts';
import { Alert, Link } from '../parts/controls.tsx';
import { duration, gpus, memory, money, titleOf } from '../parts/words.ts';
import { now } from '../state.ts';
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

function Money({ instance }: { instance: InstanceRecord }) {
  const { price_per_hour: price, currency, usage } = instance;
  const code = currency ?? usage?.currency;
  if (!code) return <>–</>;
  const soFar = money(costSoFar(instance, now.value), code, 4);
  return <>{price === null ? soFar : `${soFar} · ${money(price, code)} an hour`}</>;
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
      {message !== '' && <p class="said">{message}</p>}
      {warnings.map((warning) => (
        <p class="warning" key={warning}>
          {warning}
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

/** One instance, live. */
export function InstanceView({ id }: { id: string }) {
  const [instance, setInstance] = useState<InstanceRecord>();
  const [isGone, setGone] = useState(false);
  const onEvent = useCallback(({ type, data }: { type: string; data: unknown }) => {
    if (type === 'deleted') setGone(true);
    else setInstance(data as InstanceRecord);
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
