import { useState } from 'preact/hooks';
import type { FleetGpus, FleetNode } from '../../../wire/records.ts';
import { memory } from '../parts/words.ts';
import { choose, go } from '../state.ts';
import { countsOf, inWords, type Tile, tilesOf } from './tiles.ts';

type Colours = ReadonlyMap<string, number>;

const STATES: Readonly<Record<FleetNode['state'], { title: string; look: string }>> = {
  ready: { title: 'Ready', look: 'running' },
  not_ready: { title: 'Not ready', look: 'failed' },
  cordoned: { title: 'Cordoned', look: 'stopped' },
  closed: { title: 'Closed', look: 'stopped' },
  quarantined: { title: 'In quarantine', look: 'failed' },
  not_for_rent: { title: 'Not for rent', look: 'stopped' },
};

/** Leads to an instance of any tenant. */
function InstanceLink({ namespace, id }: { namespace: string; id: string }) {
  const to = `/dashboard/instances/${id}`;
  return (
    <a
      href={to}
      onClick={(event) => {
        event.preventDefault();
        void choose(namespace).then(() => go(to));
      }}
    >
      {namespace}/{id}
    </a>
  );
}

function classOf({ kind, colour, isUnhealthy }: Tile): string {
  if (colour === undefined) return `tile ${kind}`;
  return `tile tenant tenant-${colour}${isUnhealthy === true ? ' failed' : ''}`;
}

function Gpus({ gpus, node, colours }: { gpus: FleetGpus; node: FleetNode; colours: Colours }) {
  const { gpu_name: name, memory_mb: mb, isolation } = gpus;
  return (
    <div class="gpus">
      <span class="soft">
        {name}
        {mb > 0 && `, ${memory(mb)}`}
        {isolation === 'time_sliced' && ', time-sliced'}
      </span>
      <span class="tiles" role="img" aria-label={inWords(countsOf([{ ...node, gpus: [gpus] }]))}>
        {tilesOf(gpus, node, colours).map((tile, at) => (
          <i key={at} class={classOf(tile)} title={tile.title} />
        ))}
      </span>
    </div>
  );
}

function NodeCard({ node, colours }: { node: FleetNode; colours: Colours }) {
  const { title, look } = STATES[node.state];
  const instances = node.gpus.flatMap((gpus) => gpus.instances);
  return (
    <li class="card node">
      <div>
        <h3>{node.name}</h3>
        <p>
          <span class={`state ${look}`}>{title}</span> {node.simulated && <span class="chip">simulated</span>}
          {node.pool !== null && (
            <span class="soft">
              {' '}
              in <code>{node.pool}</code>
            </span>
          )}
          {node.driver_version !== null && <span class="soft"> · driver {node.driver_version}</span>}
        </p>
        {node.message !== '' && <p class="said">{node.message}</p>}
      </div>
      <div>
        {node.gpus.map((gpus) => (
          <Gpus key={gpus.resource} gpus={gpus} node={node} colours={colours} />
        ))}
        {instances.length > 0 && (
          <details>
            <summary>
              {instances.length === 1 ? '1 instance' : `${instances.length} instances`}
              <span class="hidden"> on {node.name}</span>
            </summary>
            <ul>
              {instances.map(({ id, namespace, state, gpu_count: count, unhealthy_gpus: unhealthy }) => (
                <li key={`${namespace}/${id}`}>
                  <InstanceLink namespace={namespace} id={id} />{' '}
                  <span class="soft">
                    {count} × · {state}
                    {unhealthy.length > 0 && ` · unhealthy: ${unhealthy.join(', ')}`}
                  </span>
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </li>
  );
}

/** The nodes, a tile for each of their GPUs. */
export function Nodes({ nodes, colours }: { nodes: readonly FleetNode[]; colours: Colours }) {
  const [text, setText] = useState('');
  const [isTrouble, setTrouble] = useState(false);
  const isLike = ({ name, pool, gpus }: FleetNode): boolean =>
    [name, pool ?? '', ...gpus.map(({ gpu_name: product }) => product)].some((one) =>
      one.toLowerCase().includes(text.toLowerCase()),
    );
  const isTroubled = ({ state, gpus }: FleetNode): boolean =>
    state !== 'ready' || gpus.some(({ unhealthy }) => unhealthy > 0);
  const shown = nodes.filter((node) => isLike(node) && (!isTrouble || isTroubled(node)));
  return (
    <section aria-labelledby="nodes-title">
      <div class="title">
        <h2 id="nodes-title">Nodes</h2>
        <form class="buttons" onSubmit={(event) => event.preventDefault()}>
          <label class="hidden" for="node-filter">
            Node, pool or GPU
          </label>
          <input
            id="node-filter"
            placeholder="Node, pool or GPU"
            value={text}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <label class="check">
            <input type="checkbox" checked={isTrouble} onChange={(event) => setTrouble(event.currentTarget.checked)} />
            <span>Only with trouble</span>
          </label>
        </form>
      </div>
      {shown.length === 0 && <p class="soft">{isTrouble ? 'No node has any trouble.' : 'No node is like that.'}</p>}
      <ul class="nodes">
        {shown.map((node) => (
          <NodeCard key={node.name} node={node} colours={colours} />
        ))}
      </ul>
    </section>
  );
}
