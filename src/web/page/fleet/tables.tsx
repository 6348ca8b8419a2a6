import type { FleetRecord } from '../../../wire/records.ts';
import { Table } from '../parts/controls.tsx';
import { age, gpuWords } from '../parts/words.ts';
import { choose, go, roughly } from '../state.ts';
import { MOST_COLOURS } from './tiles.ts';

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
export function Tenants({
  tenants,
  colours,
}: {
  tenants: FleetRecord['tenants'];
  colours: ReadonlyMap<string, number>;
}) {
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
export function Waiting({ fleet: { waiting, waiting_total: total } }: { fleet: FleetRecord }) {
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
export function Displaced({ displaced }: Pick<FleetRecord, 'displaced'>) {
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
