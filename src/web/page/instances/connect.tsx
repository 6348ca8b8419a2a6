import { useState } from 'preact/hooks';
import type { InstanceRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Alert, CopyLine } from '../parts/controls.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { samePort } from '../same/same.ts';
import { attempt, mayWrite, tenant } from '../state.ts';
import { OpenTerminal } from '../terminal/terminal.tsx';
import { codeLink } from './code-link.ts';

/** The ports that a browser can open, with their names. The API knows the port of Jupyter: it is the one without a number. */
function openable({ ports, runtype }: InstanceRecord): { port: number | null; name: string }[] {
  const declared = ports
    .filter(({ protocol }) => protocol === 'tcp')
    .map(({ container_port: port, name }) => ({ port, name: name ?? `port ${port}` }));
  return runtype === 'jupyter' ? [{ port: null, name: 'Jupyter' }, ...declared] : declared;
}

/** Opens a port in a tab. The link in it works once; the tab then has access. */
async function openPort(id: string, port: number | null): Promise<void> {
  const path = `/instances/${encodeURIComponent(id)}/links`;
  const { url } = await callApi<{ url: string }>(tenant.value, 'POST', path, { port });
  window.open(url, '_blank', 'noopener');
}

function Login({ instance: { id, ssh } }: { instance: InstanceRecord }) {
  if (ssh === null) return null;
  return (
    <>
      <CopyLine label="SSH command" text={ssh.command} />
      <CopyLine label="The same with berth, which checks the host key" text={`berth ssh ${id}`} />
      {ssh.known_hosts !== null && (
        <details>
          <summary>Check the host key yourself</summary>
          <CopyLine label="Line for ~/.ssh/known_hosts" text={ssh.known_hosts} />
        </details>
      )}
    </>
  );
}

/** Every way into the instance, with one that needs nothing: no key and no client. */
export function Connect({ instance }: { instance: InstanceRecord }) {
  const { id, state, ssh, simulated } = instance;
  const [isOpen, setOpen] = useState(false);
  const [refusal, setRefusal] = useState('');
  const isUp = state === 'running' && !simulated;
  const ports = openable(instance);
  if (simulated && ports.length === 0)
    return <p class="said">Its node is simulated: no program runs there, so there is nothing to connect to.</p>;
  return (
    <section class="card" aria-labelledby="connect-title">
      <h2 id="connect-title">Connect</h2>
      <Alert text={refusal} />
      <div class="buttons">
        {mayWrite.value && !isOpen && (
          <button type="button" class="primary" disabled={!isUp} onClick={() => setOpen(true)}>
            Open terminal
          </button>
        )}
        {ssh !== null && isUp && (
          <a class="button plain" href={codeLink(ssh)}>
            Open in VS Code
          </a>
        )}
        {mayWrite.value &&
          ports.map(({ port, name }) => (
            <button
              type="button"
              key={name}
              disabled={!isUp}
              onClick={() => void attempt(() => openPort(id, port), setRefusal)}
            >
              Open {name}
              {port !== null && name !== `port ${port}` && <span class="soft"> {port}</span>}
            </button>
          ))}
      </div>
      {!isUp && <p class="help">{simulated ? 'A simulated node runs no program.' : 'You can connect when it runs.'}</p>}
      {isOpen && <OpenTerminal id={id} close={() => setOpen(false)} />}
      {!simulated && <Login instance={instance} />}
      {ports.length > 0 && <SameElsewhere same={samePort(id, ports[0]?.port ?? null)} />}
    </section>
  );
}
