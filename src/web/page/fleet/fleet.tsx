import type { FleetRecord } from '../../../wire/records.ts';
import { Alert, Empty } from '../parts/controls.tsx';
import { useRead } from '../parts/use-read.ts';
import { Nodes } from './nodes.tsx';
import { Pools } from './pools.tsx';
import { Displaced, Tenants, Waiting } from './tables.tsx';
import { coloursOf, countsOf, inWords } from './tiles.ts';

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
