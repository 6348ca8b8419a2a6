import type { FleetNode } from '../../../wire/records.ts';
import { ago } from '../parts/words.ts';
import { type Colours, countsOf, inWords, type Tile, tilesOf } from './tiles.ts';

/** What the colour of a node in the map says. */
export type Look = 'tenant' | 'load' | 'health' | 'age';

/** A node as the map has it, whatever its colour says. */
export interface Cell {
  name: string;
  /** What it is, for the pointer and for those who cannot see it. */
  label: string;
  isTroubled: boolean;
}

const HOUR_MS = 3_600_000;

const STATE_TITLES: Readonly<Record<FleetNode['state'], string>> = {
  ready: 'Ready',
  not_ready: 'Not ready',
  cordoned: 'Cordoned',
  closed: 'Closed',
  quarantined: 'In quarantine',
  not_for_rent: 'Not for rent',
};

export function stateTitle({ state }: Pick<FleetNode, 'state'>): string {
  return STATE_TITLES[state];
}

function heat(percent: number): string {
  return `color-mix(in oklab, var(--accent) ${percent}%, var(--tile-free))`;
}

/** Ages from which on a node has a darker colour. */
const AGES: readonly { from: number; words: string; percent: number }[] = [
  { from: 0, words: 'under an hour', percent: 12 },
  { from: HOUR_MS, words: 'under a day', percent: 32 },
  { from: 24 * HOUR_MS, words: 'under a week', percent: 54 },
  { from: 7 * 24 * HOUR_MS, words: 'under 30 days', percent: 76 },
  { from: 30 * 24 * HOUR_MS, words: '30 days or more', percent: 100 },
];

const HEALTHS = {
  good: { paint: 'var(--good)', words: 'ready' },
  closed: { paint: 'var(--tile-closed)', words: 'closed by someone' },
  quarantined: { paint: 'var(--wait)', words: 'in quarantine' },
  bad: { paint: 'var(--danger)', words: 'not ready, or with a GPU out of service' },
} as const;

function healthOf({ state, gpus }: FleetNode): (typeof HEALTHS)[keyof typeof HEALTHS] {
  if (state === 'not_ready' || gpus.some(({ unhealthy }) => unhealthy > 0)) return HEALTHS.bad;
  if (state === 'quarantined') return HEALTHS.quarantined;
  return state === 'ready' ? HEALTHS.good : HEALTHS.closed;
}

/** Per cent of its GPUs that something has. */
function loadOf(node: FleetNode): number {
  const { whole, mig, time_sliced: shares, rented, others } = countsOf([node]);
  const gpus = whole + mig + shares;
  return gpus === 0 ? 0 : Math.round((100 * (rented + others)) / gpus);
}

function paintOfTile({ kind, colour, isUnhealthy }: Tile): string {
  if (isUnhealthy || kind === 'unhealthy') return 'var(--danger)';
  return kind === 'tenant' ? `var(--tenant-${colour})` : `var(--tile-${kind})`;
}

/** Colours side by side, each as wide as its share; neighbours of one colour are one stripe. */
function striped(paints: readonly string[]): string {
  if (new Set(paints).size === 1) return paints[0] ?? '';
  const share = 100 / paints.length;
  const stripes = paints.flatMap((paint, at) => {
    if (paint === paints[at - 1]) return [];
    const end = paints.findIndex((other, index) => index > at && other !== paint);
    return [`${paint} ${at * share}% ${(end === -1 ? paints.length : end) * share}%`];
  });
  return `linear-gradient(90deg, ${stripes.join(', ')})`;
}

/** The background of a node, in CSS. @param around the colours of tenants, and the time in ms since the epoch */
export function paintOf(node: FleetNode, look: Look, around: { colours: Colours; now: number }): string {
  if (look === 'load') return heat(loadOf(node));
  if (look === 'health') return healthOf(node).paint;
  if (look === 'age') {
    const old = Math.max(0, around.now - Date.parse(node.created_at));
    return heat(AGES.findLast(({ from }) => old >= from)?.percent ?? 100);
  }
  return striped(node.gpus.flatMap((gpus) => tilesOf(gpus, node, around.colours)).map(paintOfTile));
}

export function isTroubled({ state, gpus }: FleetNode): boolean {
  return state !== 'ready' || gpus.some(({ unhealthy }) => unhealthy > 0);
}

/** @param now the time in ms since the epoch */
export function cellOf(node: FleetNode, now: number): Cell {
  const { name } = node;
  const tenants = [...new Set(node.gpus.flatMap(({ instances }) => instances.map(({ namespace }) => namespace)))];
  const parts = [
    stateTitle(node),
    inWords(countsOf([node])),
    ...tenants,
    `added ${ago(now - Date.parse(node.created_at))}`,
  ];
  return { name, label: `${name}: ${parts.join(' · ')}`, isTroubled: isTroubled(node) };
}

/** What the colours mean. Those of tenants have tiles of their own. */
export const KEYS: Readonly<Record<Exclude<Look, 'tenant'>, readonly { paint: string; words: string }[]>> = {
  load: [0, 25, 50, 75, 100].map((percent) => ({ paint: heat(percent), words: `${percent} % of its GPUs in use` })),
  health: Object.values(HEALTHS),
  age: AGES.map(({ percent, words }) => ({ paint: heat(percent), words })),
};
