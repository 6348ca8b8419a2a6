import type { FleetRecord } from '../../../wire/records.ts';
import { Alert, Empty, Table } from '../parts/controls.tsx';
import { useRead } from '../parts/use-read.ts';
import { age, gpuWords } from '../parts/words.ts';
import { choose, go, roughly } from '../state.ts';
import { Nodes } from './nodes.tsx';
import { Pools } from './pools.tsx';
import { coloursOf, countsOf, inWords, MOST_COLOURS } from './tiles.ts';

type Tenant = FleetRecord['tenants'][number];

/** What the policies of a tenant let it have at most. */
function ceilingWords({ gpu_ceilings: gpus, instances_max: instances }: Tenant): string {
  const ofGpus = gpus.map(({ pool, gpu_name: product, max }) => {
    const what = product === '*' ? 'GPUs' : product;
    return `${max} ${what}${pool === '*' ? '' : ` in ${pool}`}`;
  });
  return [...ofGpus, ...(instances === null ? [] : [`${instances} instances`])].join(', ');
}

/** The tenants, with the colours of their tiles. */
function Tenants({ tenants, colours }: { tenants: FleetRecord['tenants']; colours: ReadonlyMap<string, number> }) {
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
                    {ceilingWords(tenant)}
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
    <section aria-labelledby="waiting-title">
      <h2 id="waiting-title">Waiting for GPUs</h2>
      <div class="card flush">
        {waiting.length === 0 ? (
          <p class="empty">No instance waits: all that asked for GPUs have them.</p>
        ) : (
          <Table title="Waiting" columns={['Instance', 'Wants', 'For', 'Why']}>
            {waiting.map(({ id, namespace, type, gpu_name: name, gpu_count: count, message, created_at: created }) => (
              <tr key={`${namespace}/${id}`}>
                <th scope="row">
                  {namespace}/{id}
                </th>
                <td data-label="Wants">
                  {gpuWords(count, name ?? 'any GPU', null)}
                  {type === 1 && <span class="chip">interruptible</span>}
                </td>
                <td data-label="For" class="number">
                  {age(roughly.value - Date.parse(created))}
                </td>
                <td data-label="Why" class="long">
                  {message}
                </td>
              </tr>
            ))}
          </Table>
        )}
        {total > waiting.length && <p class="more soft">and {total - waiting.length} more</p>}
      </div>
    </section>
  );
}

/** Who lost GPUs to whom, and waits for others. */
function Displaced({ displaced }: Pick<FleetRecord, 'displaced'>) {
  if (displaced.length === 0) return null;
  return (
    <section aria-labelledby="displaced-title">
      <h2 id="displaced-title">Displaced</h2>
      <div class="card flush">
        <Table title="Displaced" columns={['Instance', 'Had', 'By', 'When']}>
          {displaced.map(({ id, namespace, gpu_name: name, gpu_count: count, by, at }) => (
            <tr key={`${namespace}/${id}`}>
              <th scope="row">
                {namespace}/{id}
              </th>
              <td data-label="Had">{gpuWords(count, name ?? 'any GPU', null)}</td>
              <td data-label="By" class="long">
                {by === null ? <span class="soft">an instance that is gone</span> : `${by.namespace}/${by.id}`}
              </td>
              <td data-label="When" class="number">
                {age(roughly.value - Date.parse(at))}
              </td>
            </tr>
          ))}
        </Table>
      </div>
    </section>
  );
}

const EVERY_MS = 5_000;

/** What the colours of the tiles mean, beside those of tenants. */
const LEGEND = [
  ['free', 'free'],
  ['others', 'other pods'],
  ['closed', 'closed node'],
  ['unhealthy', 'out of service'],
] as const;

function Legend({ colours }: { colours: ReadonlyMap<string, number> }) {
  return (
    <ul class="legend" aria-hidden="true">
      {[...colours].slice(0, 8).map(([namespace, colour]) => (
        <li key={namespace}>
          <i class={`tile tenant tenant-${colour}`} /> {namespace}
        </li>
      ))}
      {LEGEND.map(([kind, words]) => (
        <li key={kind}>
          <i class={`tile ${kind}`} /> {words}
        </li>
      ))}
    </ul>
  );
}

/** The whole cluster, for those who run it. */
export function FleetView() {
  const { value: fleet, trouble, change } = useRead<FleetRecord>('/fleet', EVERY_MS);
  const colours = fleet === undefined ? new Map<string, number>() : coloursOf(fleet);
  const quarantined = fleet?.nodes.filter(({ state }) => state === 'quarantined').length ?? 0;
  return (
    <section aria-labelledby="fleet-title" class="fleet">
      <div class="title">
        <div>
          <h1 id="fleet-title">Fleet</h1>
          {fleet !== undefined && (
            <p>
              {inWords(countsOf(fleet.nodes))} on {fleet.nodes.length} {fleet.nodes.length === 1 ? 'node' : 'nodes'}
              {quarantined > 0 && `, ${quarantined} of them in quarantine`}
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
          <Legend colours={colours} />
          <Waiting fleet={fleet} />
          <Displaced displaced={fleet.displaced} />
          <Nodes nodes={fleet.nodes} colours={colours} />
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
