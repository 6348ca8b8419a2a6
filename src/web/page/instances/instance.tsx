import type { ComponentChildren } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import type { InstanceRecord } from '../../../wire/records.ts';
import { Alert, CopyLine, Link } from '../parts/controls.tsx';
import { useFollow } from '../parts/use-follow.ts';
import { costSoFar, duration, gpus, memory, money, titleOf } from '../parts/words.ts';
import { now } from '../state.ts';
import { Actions } from './actions.tsx';
import { Events } from './events.tsx';
import { State } from './list.tsx';
import { Log } from './log.tsx';
import { Ports } from './ports.tsx';
import { TerminalCard } from '../terminal/terminal.tsx';
import { Stages } from './stages.tsx';

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
  if (!code) return <>Nothing yet</>;
  const soFar = money(costSoFar(instance, now.value), code, 4);
  return <>{price === null ? soFar : `${soFar} · ${money(price, code)} an hour`}</>;
}

function Expiry({
  instance: { expires_at: at, on_expiry: what, max_duration: longest, disk_persistent: kept },
}: {
  instance: InstanceRecord;
}) {
  if (at === null) return <>{longest === null ? 'when you end it' : `${longest} after its login works`}</>;
  const left = Date.parse(at) - now.value;
  const stopped = kept === false ? 'stopped, disk lost' : 'stopped, disk kept';
  return (
    <>
      {left > 0 ? `in ${duration(left)}` : 'now'}: {what === 'delete' ? 'deleted' : stopped}
    </>
  );
}

function Facts({ instance }: { instance: InstanceRecord }) {
  const { gpu_memory_mb: gpuMemory, isolation, disk_gb: disk, disk_persistent: kept } = instance;
  return (
    <dl class="facts">
      <Fact name="GPUs">
        {gpus(instance)}
        {gpuMemory !== null && `, ${memory(gpuMemory)} each`}
        {isolation === 'time_sliced' && ', shared in time with others'}
        {isolation === 'mig' && ', a slice of a GPU'}
      </Fact>
      <Fact name="Cost so far">
        <Money instance={instance} />
      </Fact>
      <Fact name="Type">{instance.type === 1 ? 'Interruptible' : 'On demand'}</Fact>
      <Fact name="Image">
        <code>{instance.template_image}</code>
      </Fact>
      <Fact name="Disk">
        {disk === null ? 'as the image has it' : `${disk} GB`}
        {kept === false && ', lost at a stop'}
      </Fact>
      <Fact name="Node">{instance.node ?? 'none yet'}</Fact>
      <Fact name="Ends">
        <Expiry instance={instance} />
      </Fact>
      <Fact name="Id">
        <code>{instance.id}</code>
      </Fact>
    </dl>
  );
}

function Login({ instance }: { instance: InstanceRecord }) {
  if (instance.ssh === null) return null;
  return (
    <section class="card" aria-labelledby="login-title">
      <h2 id="login-title">Log in</h2>
      <CopyLine label="SSH command" text={instance.ssh.command} />
      {instance.ssh.known_hosts !== null && (
        <CopyLine label="Line for ~/.ssh/known_hosts" text={instance.ssh.known_hosts} />
      )}
    </section>
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
      <div class="columns">
        <section class="card" aria-labelledby="about-title">
          <h2 id="about-title">About</h2>
          <Facts instance={instance} />
        </section>
        <section class="card" aria-labelledby="start-title">
          <h2 id="start-title">Where the seconds of the start went</h2>
          <Stages instance={instance} />
        </section>
      </div>
      <Login instance={instance} />
      <TerminalCard instance={instance} />
      <Ports instance={instance} />
      <Log instance={instance} />
      <Events instance={instance} />
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
