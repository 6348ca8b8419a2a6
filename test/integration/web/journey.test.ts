import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { signInLink } from '../../../tools/cluster/sign-in.ts';
import { administrator } from '../../support/administrator.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { crowded } from '../../support/browser/crowded.ts';
import { accountOf, type DashboardView, openDashboard } from '../../support/dashboard-view.ts';
import { describeWith } from '../../support/needs.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';
import { serveModel } from '../../support/serve-model.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

const run = promisify(execFile);

/** A click on what has this text, as the eye reads it; `row`: in the row of a table with this text. */
interface Click {
  on: string;
  row?: RegExp;
}

/** What somebody wants, the clicks that lead there from the start page, and what they see then. */
const TASKS: readonly {
  task: string;
  clicks: readonly Click[];
  sees: (page: Page) => { waitFor(): Promise<void> };
}[] = [
  {
    task: 'rent a GPU',
    clicks: [{ on: 'Rent a GPU' }, { on: 'Rent', row: /^L4(?!0)/ }],
    sees: (page) => page.getByRole('heading', { name: 'Rent 1 × NVIDIA-L4' }),
  },
  {
    task: 'get a shell',
    clicks: [{ on: 'first steps' }, { on: 'Open terminal' }],
    sees: (page) => page.locator('.xterm-rows').getByText(/[#$]/).first(),
  },
  {
    task: 'open it in VS Code',
    clicks: [{ on: 'first steps' }],
    sees: (page) => page.getByRole('link', { name: 'Open in VS Code' }),
  },
  { task: 'read the log', clicks: [{ on: 'first steps' }], sees: (page) => page.locator('pre.log') },
  {
    task: 'stop paying for it',
    clicks: [{ on: 'first steps' }, { on: 'Stop' }],
    sees: (page) => page.getByRole('heading', { name: 'Stop this instance?' }),
  },
  {
    task: 'see what it costs',
    clicks: [{ on: 'Usage' }],
    sees: (page) => page.getByRole('heading', { name: 'USD per day' }),
  },
  {
    task: 'let a colleague log in',
    clicks: [{ on: 'SSH keys' }],
    sees: (page) => page.getByLabel('Public key', { exact: true }),
  },
  {
    task: 'make a key for a program',
    clicks: [{ on: 'API keys' }, { on: 'Create key' }],
    sees: (page) => page.locator('#create').getByLabel('Name', { exact: true }),
  },
  {
    task: 'ask a model',
    clicks: [{ on: 'Models' }, { on: 'Send' }],
    sees: (page) => page.getByRole('region', { name: 'Answer' }),
  },
  {
    task: 'find out which node is in trouble',
    clicks: [{ on: 'Fleet' }, { on: 'Only with trouble' }],
    sees: (page) => page.getByText(/^No node has any trouble\.$|^Choose a node/).first(),
  },
];

const CLICKABLE = ['a', 'button', 'label'].flatMap((one) => [one, `${one} *`]).join(', ');

/** Clicks on a text that is in sight: a stranger neither scrolls for it, nor hears the names that only a screen reader says. */
async function clickOn(page: Page, { on, row }: Click): Promise<void> {
  const where = row === undefined ? page : page.getByRole('row').filter({ hasText: row });
  const text = where.getByText(on, { exact: true }).and(page.locator(CLICKABLE)).filter({ visible: true }).first();
  await text.waitFor();
  const box = await text.boundingBox();
  const { height = 0 } = page.viewportSize() ?? {};
  expect([on, box !== null && box.y >= 0 && box.y + box.height <= height]).toEqual([on, true]);
  await text.click();
}

/** Somebody with a project and a device of their own. */
interface Guest {
  project: TestNamespace;
  view: DashboardView;
  page: Page;
  isPhone: boolean;
  /** The key that they make on the way. */
  apiKey: string;
}

const WIDE = { size: { width: 1440, height: 900 }, theme: 'light' } as const;
const PHONE = { size: { width: 390, height: 844 }, theme: 'dark' } as const;

async function arrive(name: string, url: string, device: typeof WIDE | typeof PHONE): Promise<Guest> {
  const view = await openDashboard(url, device);
  return { project: await testNamespace(name), view, page: view.page, isPhone: device === PHONE, apiKey: '' };
}

/** The list of places, which a phone has behind a button. */
async function places({ page, isPhone }: Guest): Promise<Locator> {
  if (isPhone) await page.getByRole('button', { name: /^Menu, now at / }).click();
  return page.getByRole('navigation', { name: 'Main' });
}

async function goTo(guest: Guest, place: string): Promise<void> {
  await (await places(guest)).getByRole('link', { name: place, exact: true }).click();
}

async function goToInstance(guest: Guest): Promise<void> {
  await goTo(guest, 'Instances');
  await guest.page.getByRole('link', { name: 'first steps' }).click();
  await guest.page.getByRole('heading', { name: 'first steps' }).waitFor();
}

/** Has nothing against the page as it is. The wide one is seen in every width, and keeps how that looks. */
async function look({ view, page, isPhone }: Guest, name: string): Promise<void> {
  expect([name, await view.findings()]).toEqual([name, []]);
  if (!isPhone) return view.picture(name);
  expect([name, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([
    name,
    page.viewportSize()?.width,
  ]);
  expect([name, await crowded(page)]).toEqual([name, []]);
}

/** The terminal, when it has a prompt. */
async function openTerminal({ page }: Guest): Promise<Locator> {
  await page.getByRole('button', { name: 'Open terminal' }).click();
  const screen = page.locator('.xterm-rows');
  await waitFor('a prompt', async () => /[#$]\s*$/.test((await screen.innerText()).trim()));
  return screen;
}

/** What the page copies as a tool, of the part that is open. */
async function copied({ page }: Guest, part: string, tool: string): Promise<string> {
  const same = page.locator(part).getByText('Copy as curl, berth or kubectl');
  await same.click();
  const line = page.locator(`${part} .copy-line`).filter({ hasText: new RegExp(`^${tool}`) });
  const text = await line.locator('code').innerText();
  await same.click();
  return text;
}

/** Runs a line as it was pasted, with the key that the page made. */
async function paste({ apiKey }: Guest, line: string): Promise<string> {
  const env = { ...process.env, BERTH_API_KEY: apiKey };
  return (await run('bash', ['-c', line.replace('curl ', 'curl -sS ')], { env })).stdout;
}

/** As `npm start` leaves it: all of Berth in one process, a real node, and a link that signs in. */
describeWith(
  'real node',
  'chromium',
  'curl',
)('somebody who never saw it, at a wide screen in the light and on a phone in the dark', () => {
  let house: TestNamespace;
  let engine: ScriptedEngine;
  let berth: BerthProcess;
  let guests: [wide: Guest, phone: Guest];
  let url: string;
  let removeAdministrator: () => Promise<void>;

  beforeAll(async () => {
    const { kubeconfig } = inject('cluster');
    house = await testNamespace();
    const own = await house.home();
    removeAdministrator = await administrator(house.client);
    engine = await serveModel({ client: house.client, name: own }, { models: ['small'] });
    engine.behave({ kind: 'answer', reply: { text: 'A berth is a place for a ship.' } });
    berth = await startBerth(kubeconfig, 'all', own);
    url = berth.url.replace('127.0.0.1', 'localhost');
    guests = [await arrive('vision', url, WIDE), await arrive('speech', url, PHONE)];
  }, 120_000);
  afterAll(async () => {
    await removeAdministrator();
    for (const { view, project } of guests) {
      await view[Symbol.asyncDispose]();
      await project[Symbol.asyncDispose]();
    }
    for (const one of [berth, house]) await one[Symbol.asyncDispose]();
    await engine.close();
  });

  /** A step of the story, which both do at the same time: what they wait for, they wait for once. */
  async function both(step: (guest: Guest) => Promise<void>): Promise<void> {
    await Promise.all(
      guests.map(async (guest) => {
        try {
          await step(guest);
        } catch (cause) {
          throw new Error(`Not in the project ${guest.project.name}: ${String(cause)}`, { cause });
        }
      }),
    );
  }

  it('signs in by the link, and finds the project', () =>
    both(async ({ page, project }) => {
      await page.goto(await signInLink(project.client, `${berth.url}/api/v1`));
      await accountOf(page).click();
      await page.getByLabel('Another project').fill(project.name);
      await page.getByRole('button', { name: 'Show' }).click();
      await page.getByRole('heading', { name: 'No instances yet' }).waitFor();
    }));

  it(
    'rents a machine by the table, and sees what it costs before and after',
    () =>
      both(async (guest) => {
        const { page } = guest;
        await goTo(guest, 'Rent');
        const l4 = page.getByRole('button', { name: 'Rent 1 × NVIDIA-L4', exact: true });
        await l4.waitFor();
        await look(guest, 'journey-prices');
        await l4.click();
        const dialog = page.locator('#rent');
        await dialog.getByRole('group', { name: 'Common images' }).getByRole('button', { name: 'PyTorch' }).click();
        expect(await dialog.getByLabel('Image', { exact: true }).inputValue()).toMatch(/^pytorch\/pytorch:/);
        await page.getByText('The first start downloads it.').waitFor();
        await dialog.getByLabel('Image', { exact: true }).fill('');
        await dialog.getByRole('radio', { name: /^Interruptible/ }).check();
        await dialog.getByLabel('Name', { exact: true }).fill('first steps');
        await look(guest, 'journey-rent');
        await dialog.getByRole('button', { name: /^Rent for .+ an hour$/ }).click();
        await page.getByRole('heading', { name: 'first steps' }).waitFor();
        await page.locator('.state.running').waitFor({ timeout: 90_000 });
        const cost = page.locator('.facts div', { hasText: 'Cost so far' }).locator('dd');
        const before = await cost.innerText();
        expect(before).toMatch(/\d.* · .+ an hour/);
        await waitFor('the cost to grow', async () => (await cost.innerText()) !== before);
      }),
    100_000,
  );

  it('gets a prompt, and sees in the log what a program says', () =>
    both(async (guest) => {
      const { page } = guest;
      const screen = await openTerminal(guest);
      await page.keyboard.type('echo "the answer is $((6 * 7))" | tee /proc/1/fd/1\n');
      await waitFor('the answer', async () =>
        (await screen.innerText()).replaceAll('\u00A0', ' ').includes('the answer is 42'),
      );
      await page.locator('.log .line', { hasText: 'the answer is 42' }).waitFor();
      await page.keyboard.type(`printf '\\033[31ma warning\\033[0m\\n 10%%\\r100%%\\n' >/proc/1/fd/1\n`);
      await page.locator('.log .colour-1').waitFor();
      await look(guest, 'journey-terminal');
      await page.getByRole('button', { name: 'Close terminal' }).click();
    }));

  it(
    'sees its ways in, and its load as it is measured',
    () =>
      both(async (guest) => {
        const { page } = guest;
        const link = await page.getByRole('link', { name: 'Open in VS Code' }).getAttribute('href');
        const command = await page.locator('.copy-line', { hasText: 'SSH command' }).locator('code').innerText();
        const [, user, host] = /(\S+)@(\S+)$/.exec(command) ?? [];
        expect(link).toMatch(new RegExp(`^vscode://vscode-remote/ssh-remote\\+${user}@${host}:\\d+/workspace$`));
        const cpu = page.getByRole('img', { name: /^CPU of the last hour, now / });
        await cpu.waitFor();
        const cores = async (): Promise<number> =>
          Number(/now ([\d.]+)/.exec((await cpu.getAttribute('aria-label')) ?? '')?.[1]);
        const before = await cores();
        await openTerminal(guest);
        await page.keyboard.type('timeout 90 sh -c "while sleep 0.1; do seq 499999 >/dev/null; done" &\n');
        await waitFor('the chart to move', async () => (await cores()) > before + 0.05, 90_000);
        await look(guest, 'journey-load');
        await page.locator('.xterm-helper-textarea').focus();
        await page.keyboard.type('kill %1\n');
        await page.getByRole('button', { name: 'Close terminal' }).click();
      }),
    150_000,
  );

  it('reads the log in its colours, searches it and takes it as a file', () =>
    both(async ({ page }) => {
      await page.locator('.log .colour-1', { hasText: 'a warning' }).waitFor();
      expect(await page.locator('.log').innerText()).toContain('100%');
      expect(await page.locator('.log').innerText()).not.toContain('10%');
      await page.getByLabel('Search the log').fill('ANSWER is');
      await page.getByText(/^1 of \d+ lines$/).waitFor();
      expect(await page.locator('.log .line').count()).toBe(1);
      await page.getByLabel('Search the log').fill('');
      const space = () => page.evaluate<string>("getComputedStyle(document.querySelector('pre.log')).whiteSpace");
      expect(await space()).toBe('pre-wrap');
      await page.getByLabel('Wrap').uncheck();
      await waitFor('lines that do not wrap', async () => (await space()) === 'pre');
      await page.getByLabel('Wrap').check();
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download log' }).click(),
      ]);
      expect(readFileSync((await file.path()) ?? '', 'utf8')).toContain('the answer is 42');
    }));

  it.each(TASKS)('gets to $task in two clicks at most', async ({ clicks, sees }) => {
    const [{ page }] = guests;
    expect(clicks.length).toBeLessThanOrEqual(2);
    await page.goto(`${url}/dashboard`);
    await page.getByRole('link', { name: 'first steps' }).waitFor();
    for (const click of clicks) await clickOn(page, click);
    await sees(page).waitFor();
  });

  it('loses the machine to somebody who pays more, and sees it come back', async () => {
    await both(async (guest) => {
      await goToInstance(guest);
      await guest.page.locator('.state.running').waitFor();
    });
    const metadata = { name: 'on-demand', namespace: house.name };
    const spec = { gpu: { product: 'NVIDIA-L4', count: 2 } };
    await house.client.create(GPU_INSTANCES, { metadata, spec } as never);
    await both(async (guest) => {
      const { page, project } = guest;
      await page.locator('.state.interrupted', { hasText: /place \d in line$/ }).waitFor();
      const id = page.url().split('/').at(-1);
      await waitFor('its pod to be gone, whose log was kept', async () => {
        const { items } = await project.client.list(PODS, { namespace: project.name });
        return items.every(({ metadata: { labels } }) => labels?.['berth.dev/instance'] !== id);
      });
      await page.reload();
      await page.locator('.log .line', { hasText: 'the answer is 42' }).waitFor();
      await look(guest, 'journey-interrupted');
    });
    await house.client.delete(GPU_INSTANCES, metadata);
    await both(async ({ page }) => {
      await page.locator('.state.running').waitFor();
      await page.getByText('Preempted', { exact: true }).first().waitFor();
      await page.reload();
      await page.getByRole('button', { name: /^News: \d new$/ }).click();
      await page.getByText('Runs again').waitFor();
      await page.keyboard.press('Escape');
    });
  }, 200_000);

  it('looks at the bill', () =>
    both(async (guest) => {
      const { page, isPhone } = guest;
      const menu = await places(guest);
      await (isPhone ? menu : page.getByRole('banner')).getByText('This month').waitFor();
      await menu.getByRole('link', { name: 'Usage' }).click();
      await page.getByRole('img', { name: 'USD per day' }).locator('canvas').waitFor();
      await page.getByRole('link', { name: 'first steps' }).waitFor();
      await look(guest, 'journey-bill');
      await page.getByRole('link', { name: 'first steps' }).click();
      await page.getByRole('heading', { name: 'first steps' }).waitFor();
    }));

  it('sees every node, who has it and who waits', () =>
    both(async (guest) => {
      const { page } = guest;
      await goTo(guest, 'Fleet');
      await page.getByRole('option', { name: /^real-0: / }).click();
      await page.getByRole('region', { name: 'real-0', exact: true }).getByRole('link').first().waitFor();
      await look(guest, 'journey-fleet');
    }));

  it('finds each part of the page with its states, which only the local cluster shows', () =>
    both(async (guest) => {
      const { page, view } = guest;
      await page.goto(`${url}/dashboard/parts`);
      await page.getByRole('heading', { level: 1, name: 'Parts' }).waitFor();
      await look(guest, 'parts');
      for (const name of ['Plain dialog', 'Question']) {
        await page.getByRole('button', { name }).click();
        expect(await view.findings()).toEqual([]);
        await page.keyboard.press('Escape');
      }
    }));

  it('asks a model', () =>
    both(async (guest) => {
      const { page } = guest;
      await goTo(guest, 'Models');
      await page.getByRole('row', { name: /small/ }).getByText('1 ready').waitFor();
      await page.getByRole('button', { name: 'Send' }).click();
      const answer = page.getByRole('region', { name: 'Answer' });
      await answer.filter({ hasText: 'A berth is a place for a ship.' }).waitFor();
      await look(guest, 'journey-model');
    }));

  it('makes a key whose pasted line works', () =>
    both(async (guest) => {
      const { page } = guest;
      await goTo(guest, 'API keys');
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByLabel('Name', { exact: true }).fill('my laptop');
      await page.locator('#create').getByRole('button', { name: 'Create key' }).click();
      await page.getByRole('heading', { name: 'Key created' }).waitFor();
      guest.apiKey = await page.getByLabel('Key', { exact: true }).inputValue();
      const line = await page.getByLabel('Try it').inputValue();
      await waitFor('the key to work', async () => (await paste(guest, line)).includes('"object":"list"'));
      await page.getByRole('button', { name: 'Done' }).click();
    }));

  it('changes the machine by what the page copies, and sees it change', () =>
    both(async (guest) => {
      const { page } = guest;
      await goToInstance(guest);
      await page.getByRole('button', { name: 'Rename' }).click();
      await page.getByLabel('Name', { exact: true }).fill("Ann's first steps");
      const line = await copied(guest, '#action', 'curl');
      await page.locator('#action').getByRole('button', { name: 'Cancel' }).click();
      expect(JSON.parse(await paste(guest, line))).toMatchObject({ name: "Ann's first steps" });
      await page.getByRole('heading', { name: "Ann's first steps" }).waitFor();
      await page.getByRole('button', { name: 'Extend' }).click();
      await page.getByLabel('Stop after').fill('3h');
      const extend = await copied(guest, '#action', 'curl');
      await page.locator('#action').getByRole('button', { name: 'Cancel' }).click();
      await paste(guest, extend);
      await page.getByText(/in 2 h 5\d min/).waitFor();
      const log = await copied(guest, 'section[aria-labelledby="events-title"]', 'curl');
      expect(JSON.parse(await paste(guest, log))).toMatchObject({ object: 'list' });
    }));

  it('changes it with kubectl, as the page copies it', () =>
    both(async (guest) => {
      const { page } = guest;
      const { programs = '', kubeconfig } = inject('cluster');
      await page.getByRole('button', { name: 'Rename' }).click();
      await page.getByLabel('Name', { exact: true }).fill('by kubectl');
      const line = await copied(guest, '#action', 'kubectl');
      await page.locator('#action').getByRole('button', { name: 'Cancel' }).click();
      const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${programs}:${process.env['PATH']}` };
      await run('bash', ['-c', line], { env });
      await page.getByRole('heading', { name: 'by kubectl' }).waitFor();
    }));

  it(
    'gives the machine back',
    () =>
      both(async (guest) => {
        const { page, project, view } = guest;
        await page.getByRole('button', { name: 'Delete' }).click();
        await page.locator('#action').getByRole('button', { name: 'Delete' }).click();
        await page.getByRole('heading', { name: 'This instance is gone' }).waitFor({ timeout: 60_000 });
        expect(await page.locator('.toast').count()).toBe(0);
        await page.getByText(/^It cost \$0\.\d+ in all\.$/).waitFor();
        await look(guest, 'journey-gone');
        expect((await project.client.list(GPU_INSTANCES, { namespace: project.name })).items).toEqual([]);
        expect(view.complaints.filter((text) => !/status of (?:401|403|404|409)/.test(text))).toEqual([]);
      }),
    70_000,
  );
});
