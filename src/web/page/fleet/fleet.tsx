import type { FleetRecord } from '../../../wire/records.ts';
import { Alert, Empty, Table } from '../parts/controls.tsx';
import { useRead } from '../parts/use-read.ts';
import { age, gpuWords } from '../parts/words.ts';
import { choose, go, roughly } from '../state.ts';
import { InstanceLink, Nodes } from './nodes.tsx';
import { Pools } from './pools.tsx';
import { type Colours, coloursOf, countsOf, inWords, MOST_COLOURS } from './tiles.ts';

type Tenant = FleetRecord['tenants'][number];

/** What the policies of a tenant let it have at most. */
function ceilingWords({ gpu_ceilings: gpus, instances_max: instances }: Tenant): string {
  const ofGpus = gpus.map(({ pool, gpu_name: product, max }) => {
    const what = product === '*' ? 'GPUs' : product;
    return `${max.toLocaleString()} ${what}${pool === '*' ? '' : ` in ${pool}`}`;
  });
  return [...ofGpus, ...(instances === null ? [] : [`${instances.toLocaleString()} instances`])].join(', ');
}

/** The tenants, with the colours of their tiles. */
function Tenants({ tenants, colours }: { tenants: FleetRecord['tenants']; colours: Colours }) {
  return (
    <section aria-labelledby="tenants-title">
      <h2 id="tenants-title">Tenants</h2>
      <div class="card flush">
        {tenants.length === 0 ? (
          <p class="empty">No namespace is a tenant yet, and no instance is rented.</p>
        ) : (
          <Table title="Tenants" columns={['Namespace', 'GPUs', 'Instances', 'Waiting', 'At most', 'Policies']}>
            {tenants.map((tenant) => {
              const { namespace, gpus, instances, waiting, policies } = tenant;
              return (
                <tr key={namespace}>
                  <th scope="row">
                    {gpus > 0 && (
                      <i class={`dot tenant-${colours.get(namespace) ?? MOST_COLOURS}`} aria-hidden="true" />
                    )}
                    <a
                      href="/dashboard"
                      onClick={(event) => {
                        event.preventDefault();
                        void choose(namespace).then(() => go('/dashboard'));
                      }}
                    >
                      {namespace}
                    </a>
                  </th>
                  <td data-label="GPUs" class="number">
                    {gpus}
                  </td>
                  <td data-label="Instances" class="number">
                    {instances}
                  </td>
                  <td data-label="Waiting" class="number">
                    {waiting}
                  </td>
                  <td data-label="At most" class="long">
                    {ceilingWords(tenant) || <span class="soft">no limit</span>}
                  </td>
                  <td data-label="Policies" class="long">
                    {policies.length === 0 ? <span class="soft">defaults</span> : policies.join(', ')}
                  </td>
                </tr>
              );
            })}
          </Table>
        )}
      </div>
    </section>
  );
}

/** Who waits for GPUs, in the order in which they are served, and why. */
function Waiting({ fleet: { waiting, waiting_total: total } }: { fleet: FleetRecord }) {
  return (
    <section class="card" aria-labelledby="waiting-title">
      <h2 id="waiting-title">Waiting for GPUs{total > 0 && ` · ${total}`}</h2>
      {total === 0 && <p class="soft">No instance waits: all that asked for GPUs have them.</p>}
      <ol class="line-up">
        {waiting.map(({ id, namespace, type, gpu_name: name, gpu_count: count, message, created_at: created }) => (
          <li key={`${namespace}/${id}`}>
            <InstanceLink namespace={namespace} id={id} /> {type === 1 && <span class="chip">interruptible</span>}
            <span class="block">
              {gpuWords(count, name ?? 'any GPU', null)}
              <span class="soft"> · {age(roughly.value - Date.parse(created))}</span>
            </span>
            <span class="soft block">{message}</span>
          </li>
        ))}
      </ol>
      {total > waiting.length && <p class="soft">and {total - waiting.length} more</p>}
    </section>
  );
}

/** Who lost GPUs to whom, and waits for others. */
function Displaced({ displaced }: Pick<FleetRecord, 'displaced'>) {
  if (displaced.length === 0) return null;
  return (
    <section class="card" aria-labelledby="displaced-title">
      <h2 id="displaced-title">Displaced · {displaced.length}</h2>
      <ol class="line-up">
        {displaced.map(({ id, namespace, gpu_name: name, gpu_count: count, by, at }) => (
          <li key={`${namespace}/${id}`}>
            <InstanceLink namespace={namespace} id={id} />
            <span class="block">
              {gpuWords(count, name ?? 'any GPU', null)}
              <span class="soft"> · {age(roughly.value - Date.parse(at))}</span>
            </span>
            <span class="soft block">
              Taken by {by === null ? 'an instance that is gone' : `${by.namespace}/${by.id}`}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

const EVERY_MS = 5_000;

/** The whole cluster, for those who run it. */
export function FleetView() {
  const { value: fleet, trouble, change } = useRead<FleetRecord>('/fleet', EVERY_MS);
  const colours = fleet === undefined ? new Map() : coloursOf(fleet);
  const quarantined = fleet?.nodes.filter(({ state }) => state === 'quarantined').length ?? 0;
  return (
    <section aria-labelledby="fleet-title" class="fleet">
      <div class="title">
        <div>
          <h1 id="fleet-title">Fleet</h1>
          {fleet !== undefined && (
            <p>
              {fleet.nodes.length.toLocaleString()} {fleet.nodes.length === 1 ? 'node' : 'nodes'}
              {quarantined > 0 && `, ${quarantined} in quarantine`} · {inWords(countsOf(fleet.nodes))}
            </p>
          )}
        </div>
      </div>
      <Alert text={trouble} />
      {fleet?.nodes.length === 0 && (
        <div class="card">
          <Empty title="No GPUs yet">
            <p>
              No node has GPUs that Kubernetes knows. Install the device plugin of the GPUs, or the GPU operator: then
              nodes say <code>nvidia.com/gpu</code>, and stand here. GPUs of another maker need a GPUPool that names it
              in <code>spec.devices</code>.
            </p>
          </Empty>
        </div>
      )}
      {fleet !== undefined && fleet.nodes.length > 0 && (
        <>
          <Nodes nodes={fleet.nodes} colours={colours}>
            <Waiting fleet={fleet} />
            <Displaced displaced={fleet.displaced} />
          </Nodes>
          <Pools
            pools={fleet.pools}
            onSaved={(saved) =>
              change(({ pools, ...rest }) => ({
                ...rest,
                pools: pools.map((pool) => (pool.name === saved.name ? saved : pool)),
              }))
            }
          />
          <Tenants tenants={fleet.tenants} colours={colours} />
        </>
      )}
    </section>
  );
}
