import { useState } from 'preact/hooks';
import type { InstanceRecord } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Alert } from '../parts/controls.tsx';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { samePort } from '../same/same.ts';
import { attempt, mayWrite, tenant } from '../state.ts';

/** The ports that a browser can open, with their names. The API knows the port of Jupyter: it is the one without a number. */
function openable({ ports, runtype }: InstanceRecord): { port: number | null; name: string }[] {
  const declared = ports
    .filter(({ protocol }) => protocol === 'tcp')
    .map(({ container_port: port, name }) => ({ port, name: name ?? `Port ${port}` }));
  return runtype === 'jupyter' ? [{ port: null, name: 'Jupyter' }, ...declared] : declared;
}

/** Opens ports of the instance in a tab. The link in it works once; the tab then has access. */
export function Ports({ instance }: { instance: InstanceRecord }) {
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
