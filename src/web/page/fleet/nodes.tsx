import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { FleetGpus, FleetNode } from '../../../wire/records.ts';
import { inEachTheme, plainBackgrounds } from '../parts/chart-theme.ts';
import { Choice } from '../parts/controls.tsx';
import { ago, memory } from '../parts/words.ts';
import { choose, go, roughly } from '../state.ts';
import { type Cell, cellOf, isTroubled, KEYS, type Look, paintOf, stateTitle } from './heat.ts';
import { type Colours, countsOf, devicesOf, inWords, type Tile, tilesOf } from './tiles.ts';

const STATE_LOOKS: Readonly<Record<FleetNode['state'], string>> = {
  ready: 'running',
  not_ready: 'failed',
  cordoned: 'stopped',
  closed: 'stopped',
  quarantined: 'failed',
  not_for_rent: 'stopped',
};

/** Leads to an instance of any tenant. */
export function InstanceLink({ namespace, id }: { namespace: string; id: string }) {
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

/** All about one node, and a way to each of its instances. */
function Story({ node, colours }: { node: FleetNode; colours: Colours }) {
  const { name, pool, simulated, driver_version: driver, cuda_version: cuda, created_at: created, message } = node;
  const facts = [
    `Added ${ago(roughly.value - Date.parse(created))}`,
    ...(driver === null ? [] : [`driver ${driver}`]),
    ...(cuda === null ? [] : [`CUDA ${cuda}`]),
  ];
  return (
    // It may scroll, so the keyboard must get there.
    <section class="card node" aria-labelledby="node-title" tabIndex={0}>
      <h3 id="node-title">{name}</h3>
      <p>
        <span class={`state ${STATE_LOOKS[node.state]}`}>{stateTitle(node)}</span>{' '}
        {simulated && <span class="chip">simulated</span>}
        {pool !== null && (
          <span class="soft">
            {' '}
            in <code>{pool}</code>
          </span>
        )}
      </p>
      {message !== '' && <p class="said">{message}</p>}
      <p class="soft">{facts.join(' · ')}</p>
      {node.gpus.map((gpus) => (
        <Gpus key={gpus.resource} gpus={gpus} node={node} colours={colours} />
      ))}
      <ul>
        {node.gpus
          .flatMap(({ instances }) => instances)
          .map(({ id, namespace, state, type, gpu_count: count, unhealthy_gpus: unhealthy, ...others }) => (
            <li key={`${namespace}/${id}`}>
              <InstanceLink namespace={namespace} id={id} />{' '}
              <span class="soft">
                {count === 1 ? '1 GPU' : `${count} GPUs`} · {state}
                {type === 1 && ' · interruptible'}
                {devicesOf(others) !== '' && ` · ${devicesOf(others)}`}
                {unhealthy.length > 0 && ` · unhealthy: ${unhealthy.join(', ')}`}
              </span>
            </li>
          ))}
      </ul>
    </section>
  );
}

/** Cells that are large enough to hit where there are few. */
function sizeOf(count: number): string {
  return count > 250 ? 'many' : count > 40 ? 'some' : 'few';
}

/** How many steps each key goes; undefined for another key. */
function stepOf(key: string, columns: number, count: number): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: columns,
    ArrowUp: -columns,
    Home: -count,
    End: count,
  };
  return steps[key];
}

/** Sets the backgrounds of the cells, in their order. */
function paintCells(list: HTMLElement, paints: readonly string[]): void {
  const backgrounds = plainBackgrounds(paints);
  for (const [at, cell] of [...list.children].entries()) (cell as HTMLElement).style.background = backgrounds[at] ?? '';
}

/** All nodes in one grid, of which one may be chosen: by a click, or by the arrow keys. */
function HeatMap(props: {
  cells: readonly Cell[];
  paints: readonly string[];
  chosen: string;
  onChoose: (name: string) => void;
}) {
  const { cells, paints, chosen, onChoose } = props;
  const list = useRef<HTMLUListElement>(null);
  const at = cells.findIndex(({ name }) => name === chosen);
  // Another colour leaves all else as it is, so a thousand cells are not compared for it.
  const options = useMemo(
    () =>
      cells.map(({ name, label, isTroubled: isMarked }, index) => (
        <li
          key={name}
          id={`node-${index}`}
          role="option"
          data-node={name}
          class={isMarked ? 'troubled' : undefined}
          aria-selected={index === at}
          aria-label={label}
          title={label}
        />
      )),
    [cells, at],
  );
  useLayoutEffect(() => inEachTheme(() => paintCells(list.current as HTMLElement, paints)), [cells, paints]);
  function onKeyDown(event: KeyboardEvent): void {
    const columns = getComputedStyle(list.current as Element).gridTemplateColumns.split(' ').length;
    const step = stepOf(event.key, columns, cells.length);
    if (step === undefined) return;
    event.preventDefault();
    const next = at === -1 ? 0 : Math.max(0, Math.min(cells.length - 1, at + step));
    onChoose(cells[next]?.name ?? '');
    document.getElementById(`node-${next}`)?.scrollIntoView({ block: 'nearest' });
  }
  return (
    <ul
      ref={list}
      class={`heat ${sizeOf(cells.length)}`}
      role="listbox"
      aria-label="Nodes"
      tabIndex={0}
      aria-activedescendant={at === -1 ? undefined : `node-${at}`}
      onKeyDown={onKeyDown}
      onClick={(event) => {
        const cell = (event.target as Element).closest<HTMLElement>('[role=option]');
        if (cell !== null) onChoose(cell.dataset['node'] ?? '');
      }}
    >
      {options}
    </ul>
  );
}

/** What the colours of GPUs mean, beside those of tenants. */
const TILES = [
  ['free', 'free'],
  ['others', 'other pods'],
  ['closed', 'closed node'],
  ['unhealthy', 'out of service'],
] as const;

function Legend({ look, colours }: { look: Look; colours: Colours }) {
  return (
    <ul class="legend" aria-hidden="true">
      {look !== 'tenant' &&
        KEYS[look].map(({ paint, words }) => (
          <li key={words}>
            <i class="tile" style={{ background: paint }} /> {words}
          </li>
        ))}
      {look === 'tenant' &&
        [...colours].slice(0, 8).map(([namespace, colour]) => (
          <li key={namespace}>
            <i class={`tile tenant tenant-${colour}`} /> {namespace}
          </li>
        ))}
      {look === 'tenant' &&
        TILES.map(([kind, words]) => (
          <li key={kind}>
            <i class={`tile ${kind}`} /> {words}
          </li>
        ))}
    </ul>
  );
}

const LOOKS = [
  { value: 'tenant', title: 'Tenant' },
  { value: 'load', title: 'Load' },
  { value: 'health', title: 'Health' },
  { value: 'age', title: 'Age' },
] as const;

/** The nodes as a map, the story of the one that is chosen, and beside both what the children are. */
export function Nodes(props: { nodes: readonly FleetNode[]; colours: Colours; children: ComponentChildren }) {
  const { nodes, colours, children } = props;
  const [look, setLook] = useState<Look>('tenant');
  const [text, setText] = useState('');
  const [isTrouble, setTrouble] = useState(false);
  const [chosen, setChosen] = useState('');
  const now = roughly.value;
  const shown = useMemo(() => {
    const isLike = ({ name, pool, gpus }: FleetNode): boolean =>
      [name, pool ?? '', ...gpus.map(({ gpu_name: product }) => product)].some((one) =>
        one.toLowerCase().includes(text.toLowerCase()),
      );
    return nodes.filter((node) => isLike(node) && (!isTrouble || isTroubled(node)));
  }, [nodes, text, isTrouble]);
  const cells = useMemo(() => shown.map((node) => cellOf(node, now)), [shown, now]);
  const paints = useMemo(() => shown.map((node) => paintOf(node, look, { colours, now })), [shown, look, now]);
  const node = shown.find(({ name }) => name === chosen);
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
      <div class="map">
        <div class="card">
          <Choice legend="Colour by" name="look" value={look} options={LOOKS} onChange={setLook} />
          <Legend look={look} colours={colours} />
          {shown.length === 0 ? (
            <p class="soft">{isTrouble ? 'No node has any trouble.' : 'No node is like that.'}</p>
          ) : (
            <HeatMap cells={cells} paints={paints} chosen={chosen} onChoose={setChosen} />
          )}
          <p class="help">Choose a node to read about it. A red edge is trouble.</p>
        </div>
        <div class="beside">
          {node !== undefined && <Story node={node} colours={colours} />}
          {children}
        </div>
      </div>
    </section>
  );
}
