/**
 * The list of instances in the dashboard and the map of as many nodes, in Chromium, against the HTTP interface of this
 * process without a cluster: `npm run bench:page -- [INSTANCES] [CHANGES A SECOND] [SECONDS]` prints a Markdown table. The
 * processor time is that of the page's main thread, which other load on the machine changes least.
 */
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { CDPSession, Page } from 'playwright-core';
import { INDEXES } from '../../src/caches/indexes.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { Cache } from '../../src/kube/watch/cache.ts';
import type { GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { buildPage } from '../../tools/lib/page.ts';
import { launchBrowser } from '../support/browser/browser.ts';
import { accountOf } from '../support/dashboard-view.ts';
import { startLoneApi } from '../support/http/lone-api.ts';
import { claimOn, gpuInstance } from '../support/inventory-world.ts';
import { fleetOf } from '../support/large-fleet.ts';
import { judged, ms, quantile } from './figures.ts';

const PAINTS = 7;
/** How often the nodes get another colour. */
const COLOURS = 20;
/** Milliseconds between two frames from which one between them is missing, at 60 frames a second. */
const LATE_MS = 25;
const CREATED = new Date(Date.now() - 3_600_000).toISOString();

const [many = 1000, perSecond = 50, seconds = 12] = process.argv.slice(2).map(Number);

/** The API server, as far as a person who signs in and looks needs one. */
const client = {
  raw: (_method: string, path: string) => {
    const user = { username: 'system:serviceaccount:team:ann' };
    const status = path.endsWith('/tokenreviews')
      ? { authenticated: true, user, audiences: ['berth'] }
      : { allowed: true };
    return Promise.resolve({ status });
  },
  list: () => Promise.resolve({ items: [] }),
} as unknown as Partial<KubeClient>;

const cache = new Cache<GpuInstance>({ indexers: INDEXES.instances, onListenerError: () => undefined });
let version = 1;

function instance(name: string, displayName: string, reason: 'Running' | 'Stopped'): GpuInstance {
  version += 1;
  const status = reason === 'Running' ? 'True' : 'False';
  const conditions = [{ type: 'Ready', status, reason, message: '', lastTransitionTime: CREATED } as const];
  const stages = { accepted: CREATED, ready: CREATED };
  const made = gpuInstance(name, { displayName }, { claim: claimOn('node-1'), conditions, stages });
  const metadata = { creationTimestamp: CREATED, namespace: 'team', resourceVersion: String(version) };
  return { ...made, metadata: { ...made.metadata, ...metadata } };
}

/** Milliseconds of the main thread so far. */
async function busyMs(devtools: CDPSession): Promise<number> {
  const { metrics } = await devtools.send('Performance.getMetrics');
  return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN);
}

/** Milliseconds from the navigation until all rows were painted. */
async function paint(page: Page, url: string): Promise<number> {
  await page.goto(`${url}/dashboard`);
  for (;;) {
    const painted = await page.evaluate<unknown>('window.painted');
    if (typeof painted === 'number') return painted;
    await delay(20);
  }
}

/** Notes when all rows are there and the frame after that is out. */
const WATCH_PAINT = `
  const look = () => {
    const isThere = document.querySelectorAll('tbody tr').length >= ${many};
    requestAnimationFrame(isThere ? () => setTimeout(() => { window.painted = performance.now(); }) : look);
  };
  requestAnimationFrame(look);`;

/** Notes the milliseconds between frames anew. */
const WATCH_FRAMES = `(() => {
  const isWatched = window.frames_ !== undefined;
  window.frames_ = [];
  if (isWatched) return;
  let last = performance.now();
  const tick = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
})()`;

async function change(): Promise<number> {
  const end = performance.now() + seconds * 1000;
  let changes = 0;
  while (performance.now() < end) {
    const name = `i-${Math.floor(Math.random() * many)}`;
    cache.upsert(instance(name, `changed ${changes}`, changes % 2 === 0 ? 'Stopped' : 'Running'));
    cache.advance(String(version));
    changes += 1;
    await delay(1000 / perSecond);
  }
  return changes;
}

await buildPage();
cache.replace(
  Array.from({ length: many }, (_, at) => instance(`i-${at}`, `instance ${at}`, 'Running')),
  '1',
);
cache.advance(String(version));
const api = await startLoneApi({ tenants: ['team'], instances: cache.store, client });
const url = `http://localhost:${api.address.port}`;
const browser = await launchBrowser();
const page = await browser.newPage({ viewport: { width: 1180, height: 800 } });
const devtools = await page.context().newCDPSession(page);
await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
await page.goto(`${url}/dashboard`);
await page.getByLabel('Kubernetes token').fill('opaque');
await page.getByRole('button', { name: 'Sign in' }).click();
await accountOf(page).waitFor();
await page.addInitScript(WATCH_PAINT);
const paints: { after: number; busy: number }[] = [];
for (let at = 0; at < PAINTS; at += 1) paints.push({ after: await paint(page, url), busy: await busyMs(devtools) });
await page.evaluate(WATCH_FRAMES);
const before = await busyMs(devtools);
const changes = await change();
const busy = (await busyMs(devtools)) - before;
const frames = await page.evaluate<number[]>('window.frames_');
const after = paints.map((one) => one.after);

/** Shows the map of as many nodes. */
async function openMap(): Promise<void> {
  await page.route('**/api/v1/fleet', (route) => route.fulfill({ json: fleetOf(many) }));
  await page.goto(`${url}/dashboard/fleet`);
  await page.getByRole('option', { name: `node-${many - 1}: ` }).waitFor();
}

interface Stretch {
  steps: number;
  busy: number;
  frames: number[];
}

/** Takes one step after the other, ten a second, for as long as everything here takes. */
async function repeat(step: (at: number) => Promise<unknown>): Promise<Stretch> {
  await page.evaluate(WATCH_FRAMES);
  const began = await busyMs(devtools);
  const end = performance.now() + seconds * 1000;
  let steps = 0;
  for (; performance.now() < end; steps += 1) {
    await step(steps);
    await delay(100);
  }
  return { steps, busy: (await busyMs(devtools)) - began, frames: await page.evaluate<number[]>('window.frames_') };
}

/** Walks over the map by the arrow keys. */
async function walk(): Promise<Stretch> {
  await page.getByRole('listbox', { name: 'Nodes' }).focus();
  return repeat((at) => page.keyboard.press(at % 50 < 25 ? 'ArrowDown' : 'ArrowUp'));
}

/** Moves the pointer over the map, ten cells a step. */
async function point(): Promise<Stretch> {
  const box = await page.getByRole('listbox', { name: 'Nodes' }).boundingBox();
  const { x = 0, y = 0, width = 0, height = 0 } = box ?? {};
  const visible = Math.min(height, 760 - y);
  return repeat((at) => page.mouse.move(x + ((at * 37) % width), y + ((at * 23) % visible), { steps: 10 }));
}

function scroll(): Promise<Stretch> {
  return repeat((at) => page.mouse.wheel(0, at % 10 < 5 ? 120 : -120));
}

/** From the click on another colour until all nodes have it on the screen. */
const RECOLOUR = `(at) => new Promise((done) => {
  const looks = document.querySelectorAll('input[name=look]');
  const began = performance.now();
  looks[at % looks.length].click();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})`;

/** Gives the nodes another colour. */
async function recolour(): Promise<{ after: number[]; busy: number[] }> {
  const [after, busies]: [number[], number[]] = [[], []];
  for (let at = 1; at <= COLOURS; at += 1) {
    const began = await busyMs(devtools);
    after.push(await page.evaluate<number>(`(${RECOLOUR})(${at})`));
    busies.push((await busyMs(devtools)) - began);
  }
  return { after, busy: busies };
}

await openMap();
const [map, pointed, scrolled, coloured] = [await walk(), await point(), await scroll(), await recolour()];

const CAUSE = 'the main thread, or the machine, had other work';

function framesOf({ frames: all }: Pick<Stretch, 'frames'>): string {
  const late = all.filter((one) => one > LATE_MS).length;
  return `${all.length}, ${late} of them late | late ${judged({ most: 0, cause: CAUSE }, late)}`;
}

function middleAndWorst(values: readonly number[]): string {
  return `${ms(quantile(values, 0.5))}, ${ms(quantile(values, 1))}`;
}

console.log(`${cpus().length} × ${cpus()[0]?.model}\n
| figure | value | to reach |
|---|---|---|
| ${many} instances painted, median and worst of ${PAINTS} | ${middleAndWorst(after)} | ${judged({ most: 1000, cause: CAUSE }, quantile(after, 1))} ms |
| processor time of that, median | ${ms(
  quantile(
    paints.map((one) => one.busy),
    0.5,
  ),
)} | |
| frames in ${seconds} s with ${changes} changes | ${framesOf({ frames })} |
| processor time of a change | ${(busy / changes).toFixed(1)} ms | |
| frames in ${seconds} s of ${map.steps} steps over ${many} nodes | ${framesOf(map)} |
| processor time of a step, and of reading the fleet every 5 s | ${(map.busy / map.steps).toFixed(1)} ms | |
| frames in ${seconds} s of pointing at them | ${framesOf(pointed)} |
| frames in ${seconds} s of scrolling | ${framesOf(scrolled)} |
| another colour for them, until it is painted, median and worst of ${COLOURS} | ${middleAndWorst(coloured.after)} | |
| processor time of that, median and worst | ${middleAndWorst(coloured.busy)} | |`);
await browser.close();
await api.close();
process.exit(0);
