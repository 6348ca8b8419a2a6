import type { EventListRecord, InstanceRecord } from '../../../wire/records.ts';
import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { callApi } from '../calls/call.ts';
import { useFollow } from '../calls/follow.ts';
import { Alert, CopyLine, Link } from '../parts/controls.tsx';
import { costSoFar, duration, gpus, memory, money, titleOf } from '../parts/words.ts';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameEvents, samePort } from '../same/same.ts';
import { attempt, mayWrite, now, tenant } from '../state.ts';
import { TerminalCard } from '../terminal/terminal.tsx';
import { Actions } from './actions.tsx';
import { State } from './list.tsx';
import { Log } from './log.tsx';
import { Stages } from './stages.tsx';

/** The ports that a browser can open, with their names. The API knows the port of Jupyter: it is the one without a number. */
function openable({ ports, runtype }: InstanceRecord): { port: number | null; name: string }[] {
  const declared = ports
    .filter(({ protocol }) => protocol === 'tcp')
    .map(({ container_port: port, name }) => ({ port, name: name ?? `Port ${port}` }));
  return runtype === 'jupyter' ? [{ port: null, name: 'Jupyter' }, ...declared] : declared;
}

/** Opens ports of the instance in a tab. The link in it works once; the tab then has access. */
function Ports({ instance }: { instance: InstanceRecord }) {
  const [refusal, setRefusal] = useState('');
  const ports = openable(instance);
  if (ports.length === 0) return null;
  async function open(port: number | null): Promise<void> {
    const { url } = await callApi<{ url: string }>(tenant.value, 'POST', `/instances/${instance.id}/links`, { port });
    window.open(url, '_blank', 'noopener');
  }
  return (
    <section class="card" aria-labelledby="ports-title">
      <h2 id="ports-title">Ports</h2>
      <Alert text={refusal} />
      <ul class="ports">
        {ports.map(({ port, name }) => (
          <li key={name}>
            <span>
              {name} {port !== null && <code>{port}</code>}
            </span>
            {mayWrite.value && (
              <button
                type="button"
                class="small"
                aria-label={`Open ${name}`}
                disabled={instance.state !== 'running' || instance.simulated}
                onClick={() => void attempt(() => open(port), setRefusal)}
              >
                Open
              </button>
            )}
          </li>
        ))}
      </ul>
      <SameElsewhere same={samePort(instance.id, ports[0]?.port ?? null)} />
    </section>
  );
}

/** What happened to the instance. Read again when its state or reason changes. */
function Events({ instance: { id, state, reason } }: { instance: InstanceRecord }) {
  const [list, setList] = useState<EventListRecord>();
  const [refusal, setRefusal] = useState('');
  useEffect(() => {
    let isLeft = false;
    void attempt(async () => {
      const read = await callApi<EventListRecord>(tenant.value, 'GET', `/instances/${encodeURIComponent(id)}/events`);
      if (!isLeft) setList(read);
    }, setRefusal);
    return () => {
      isLeft = true;
    };
  }, [id, state, reason]);
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">What happened</h2>
      <Alert text={refusal} />
      <ol class="events">
        {list?.data.toReversed().map(({ at, type, reason, message, count }) => (
          <li key={`${at} ${reason} ${message}`} class={type}>
            <time dateTime={at}>{new Date(at).toLocaleTimeString()}</time>
            <span>
              <strong>{reason}</strong> {message}
              {count > 1 && <span class="soft"> · {count} times</span>}
            </span>
          </li>
        ))}
      </ol>
      {list?.data.length === 0 && <p class="soft">Nothing yet.</p>}
      <SameElsewhere same={sameEvents(tenant.value, id)} />
    </section>
  );
}

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
          <h2 id="start-title">Startup</h2>
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
