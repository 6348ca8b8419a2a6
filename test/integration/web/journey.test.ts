import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { signInLink } from '../../../tools/cluster/sign-in.ts';
import { administrator } from '../../support/administrator.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
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

/** Clicks on a text that is in sight: a stranger neither scrolls for it, nor hears the names that only a screen reader says. */
async function clickOn(page: Page, { on, row }: Click): Promise<void> {
  const where = row === undefined ? page : page.getByRole('row').filter({ hasText: row });
  const text = where.getByText(on, { exact: true }).filter({ visible: true }).first();
  await text.waitFor();
  const box = await text.boundingBox();
  const { height = 0 } = page.viewportSize() ?? {};
  expect([on, box !== null && box.y >= 0 && box.y + box.height <= height]).toEqual([on, true]);
  await text.click();
}

/** As `npm start` leaves it: all of Berth in one process, a real node, and a link that signs in. */
describeWith(
  'real node',
  'chromium',
  'curl',
)('somebody who never saw it', () => {
  let tenant: TestNamespace;
  let engine: ScriptedEngine;
  let berth: BerthProcess;
  let view: DashboardView;
  let page: Page;
  let url: string;
  let apiKey: string;
  let removeAdministrator: () => Promise<void>;

  beforeAll(async () => {
    const { kubeconfig } = inject('cluster');
    tenant = await testNamespace();
    const own = await tenant.home();
    removeAdministrator = await administrator(tenant.client);
    engine = await serveModel({ client: tenant.client, name: own }, { models: ['small'] });
    engine.behave({ kind: 'answer', reply: { text: 'A berth is a place for a ship.' } });
    berth = await startBerth(kubeconfig, 'all', own);
    url = berth.url.replace('127.0.0.1', 'localhost');
    view = await openDashboard(url);
    ({ page } = view);
  }, 120_000);
  afterAll(async () => {
    await removeAdministrator();
    for (const one of [view, berth, tenant]) await one[Symbol.asyncDispose]();
    await engine.close();
  });

  /** Has nothing against the page as it is, and keeps how it looks. */
  async function look(name: string): Promise<void> {
    expect(await view.findings()).toEqual([]);
    await view.picture(name);
  }

  /** What the page copies as a tool, of the part that is open. */
  async function copied(part: string, tool: string): Promise<string> {
    const same = page.locator(part).getByText('Copy as curl, berth or kubectl');
    await same.click();
    const line = page.locator(`${part} .copy-line`).filter({ hasText: new RegExp(`^${tool}`) });
    const text = await line.locator('code').innerText();
    await same.click();
    return text;
  }

  /** Runs a line as it was pasted, with the key that the page made. */
  async function paste(line: string): Promise<string> {
    const env = { ...process.env, BERTH_API_KEY: apiKey };
    return (await run('bash', ['-c', line.replace('curl ', 'curl -sS ')], { env })).stdout;
  }

  it('signs in by the link, and finds the project', async () => {
    await page.goto(await signInLink(tenant.client, `${berth.url}/api/v1`));
    await accountOf(page).click();
    await page.getByLabel('Another project').fill(tenant.name);
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor();
  });

  it('rents a machine by the table, and sees what it costs before and after', async () => {
    await page.getByRole('link', { name: 'Rent', exact: true }).click();
    const l4 = page.getByRole('button', { name: 'Rent 1 × NVIDIA-L4', exact: true });
    await l4.waitFor();
    await look('journey-prices');
    await l4.click();
    const images = page.getByRole('group', { name: 'Common images' });
    await images.getByRole('button', { name: 'PyTorch' }).click();
    expect(await page.locator('#rent').getByLabel('Image', { exact: true }).inputValue()).toMatch(/^pytorch\/pytorch:/);
    await page.getByText('The first start downloads it.').waitFor();
    await page.locator('#rent').getByLabel('Image', { exact: true }).fill('');
    await page
      .locator('#rent')
      .getByRole('radio', { name: /^Interruptible/ })
      .check();
    await page.locator('#rent').getByLabel('Name', { exact: true }).fill('first steps');
    await look('journey-rent');
    const button = page.locator('#rent').getByRole('button', { name: /^Rent for .+ an hour$/ });
    await button.click();
    await page.getByRole('heading', { name: 'first steps' }).waitFor();
    await page.locator('.state.running').waitFor({ timeout: 90_000 });
    const cost = page.locator('.facts div', { hasText: 'Cost so far' }).locator('dd');
    const before = await cost.innerText();
    expect(before).toMatch(/\d.* · .+ an hour/);
    await waitFor('the cost to grow', async () => (await cost.innerText()) !== before);
  }, 100_000);

  it('gets a prompt, and sees in the log what a program says', async () => {
    await page.getByRole('button', { name: 'Open terminal' }).click();
    const screen = page.locator('.xterm-rows');
    await waitFor('a prompt', async () => /[#$]\s*$/.test((await screen.innerText()).trim()));
    await page.keyboard.type('echo "the answer is $((6 * 7))" | tee /proc/1/fd/1\n');
    await waitFor('the answer', async () =>
      (await screen.innerText()).replaceAll('\u00A0', ' ').includes('the answer is 42'),
    );
    await page.locator('.log .line', { hasText: 'the answer is 42' }).waitFor();
    await page.keyboard.type(`printf '\\033[31ma warning\\033[0m\\n 10%%\\r100%%\\n' >/proc/1/fd/1\n`);
    await page.locator('.log .colour-1').waitFor();
    await look('journey-terminal');
    await page.getByRole('button', { name: 'Close terminal' }).click();
  });

  it('reads the log in its colours, searches it and takes it as a file', async () => {
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
  });

  it('sees its ways in, and its load as it is measured', async () => {
    const link = await page.getByRole('link', { name: 'Open in VS Code' }).getAttribute('href');
    const command = await page.locator('.copy-line', { hasText: 'SSH command' }).locator('code').innerText();
    const [, user, host] = /(\S+)@(\S+)$/.exec(command) ?? [];
    expect(link).toMatch(new RegExp(`^vscode://vscode-remote/ssh-remote\\+${user}@${host}:\\d+/workspace$`));
    const cpu = page.getByRole('img', { name: /^CPU of the last hour, now / });
    await cpu.waitFor();
    const cores = async (): Promise<number> =>
      Number(/now ([\d.]+)/.exec((await cpu.getAttribute('aria-label')) ?? '')?.[1]);
    const before = await cores();
    await page.getByRole('button', { name: 'Open terminal' }).click();
    const screen = page.locator('.xterm-rows');
    await waitFor('a prompt', async () => /[#$]\s*$/.test((await screen.innerText()).trim()));
    await page.keyboard.type('timeout 90 sh -c "while :; do :; done" &\n');
    await waitFor('the chart to move', async () => (await cores()) > before + 0.05, 90_000);
    await look('journey-load');
    await page.locator('.xterm-helper-textarea').focus();
    await page.keyboard.type('kill %1\n');
    await page.getByRole('button', { name: 'Close terminal' }).click();
  }, 150_000);

  it.each(TASKS)('gets to $task in two clicks at most', async ({ clicks, sees }) => {
    expect(clicks.length).toBeLessThanOrEqual(2);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`${url}/dashboard`);
    await page.getByRole('link', { name: 'first steps' }).waitFor();
    for (const click of clicks) await clickOn(page, click);
    await sees(page).waitFor();
  });

  it('rents, connects, reads the log, asks a model, sees the bill and gives back on a phone in the dark', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: 'dark' });
    const goTo = async (place: string): Promise<void> => {
      await page.getByRole('button', { name: /^Menu, now at / }).click();
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: place, exact: true }).click();
    };
    await page.goto(`${url}/dashboard`);
    await goTo('Rent');
    await page.getByRole('button', { name: 'Rent 1 × NVIDIA-L4', exact: true }).click();
    const dialog = page.locator('#rent');
    await dialog.getByLabel('Name', { exact: true }).fill('by phone');
    await dialog.getByRole('button', { name: /^Rent for .+ an hour$/ }).click();
    await page.getByRole('heading', { name: 'by phone' }).waitFor();
    await page.locator('.state.running').waitFor();
    await page.getByRole('button', { name: 'Open terminal' }).click();
    const screen = page.locator('.xterm-rows');
    await waitFor('a prompt', async () => /[#$]\s*$/.test((await screen.innerText()).trim()));
    await page.keyboard.type('echo "from $((6 * 7))" >/proc/1/fd/1\n');
    await page.locator('.log .line', { hasText: 'from 42' }).waitFor();
    await page.getByRole('button', { name: 'Close terminal' }).click();
    await goTo('Models');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('region', { name: 'Answer' }).filter({ hasText: 'A berth is a place' }).waitFor();
    await goTo('Usage');
    await page.getByRole('link', { name: 'by phone' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.locator('#action').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'This instance is gone' }).waitFor();
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1180, height: 800 });
  }, 200_000);

  it('loses the machine to somebody who pays more, and sees it come back', async () => {
    await page.goto(`${url}/dashboard`);
    await page.getByRole('link', { name: 'first steps' }).click();
    await page.locator('.state.running').waitFor();
    const metadata = { name: 'on-demand', namespace: tenant.name };
    const spec = { gpu: { product: 'NVIDIA-L4', count: 2 } };
    await tenant.client.create(GPU_INSTANCES, { metadata, spec } as never);
    await page.locator('.state.interrupted').waitFor();
    const id = page.url().split('/').at(-1);
    await waitFor('its pod to be gone, whose log was kept', async () => {
      const { items } = await tenant.client.list(PODS, { namespace: tenant.name });
      return items.every(({ metadata }) => metadata.labels?.['berth.dev/instance'] !== id);
    });
    await page.reload();
    await page.locator('.log .line', { hasText: 'the answer is 42' }).waitFor();
    await look('journey-interrupted');
    await tenant.client.delete(GPU_INSTANCES, metadata);
    await page.locator('.state.running').waitFor();
    await page.getByText('Preempted', { exact: true }).first().waitFor();
    await page.reload();
    await page.getByRole('button', { name: /^News: \d new$/ }).click();
    await page.getByText('Runs again').waitFor();
    await page.keyboard.press('Escape');
  }, 200_000);

  it('looks at the bill', async () => {
    const instance = page.url();
    await page.getByRole('link', { name: 'Usage' }).click();
    await page.getByRole('link', { name: 'first steps' }).waitFor();
    await page.getByRole('img', { name: 'USD per day' }).locator('canvas').waitFor();
    await page.getByRole('banner').getByText('This month').waitFor();
    await look('journey-bill');
    await page.goto(instance);
    await page.getByRole('heading', { name: 'first steps' }).waitFor();
  });

  it('sees every node, who has it and who waits', async () => {
    const instance = page.url();
    await page.getByRole('link', { name: 'Fleet', exact: true }).click();
    await page.getByRole('option', { name: /^real-0: / }).click();
    await page.getByRole('region', { name: 'real-0', exact: true }).getByRole('link').first().waitFor();
    await look('journey-fleet');
    await page.goto(instance);
    await page.getByRole('heading', { name: 'first steps' }).waitFor();
  });

  it('finds each part of the page with its states, which only the local cluster shows', async () => {
    const instance = page.url();
    await page.goto(`${url}/dashboard/parts`);
    await page.getByRole('heading', { level: 1, name: 'Parts' }).waitFor();
    await look('parts');
    for (const name of ['Plain dialog', 'Question']) {
      await page.getByRole('button', { name }).click();
      expect(await view.findings()).toEqual([]);
      await page.keyboard.press('Escape');
    }
    await page.goto(instance);
    await page.getByRole('heading', { name: 'first steps' }).waitFor();
  });

  it('asks a model', async () => {
    const instance = page.url();
    await page.getByRole('link', { name: 'Models', exact: true }).click();
    await page.getByRole('row', { name: /small/ }).getByText('1 ready').waitFor();
    await page.getByRole('button', { name: 'Send' }).click();
    const answer = page.getByRole('region', { name: 'Answer' });
    await answer.filter({ hasText: 'A berth is a place for a ship.' }).waitFor();
    await look('journey-model');
    await page.goto(instance);
    await page.getByRole('heading', { name: 'first steps' }).waitFor();
  });

  it('makes a key whose pasted line works', async () => {
    const instance = page.url();
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name', { exact: true }).fill('my laptop');
    await page.locator('#create').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
    apiKey = await page.getByLabel('Key', { exact: true }).inputValue();
    const line = await page.getByLabel('Try it').inputValue();
    await waitFor('the key to work', async () => (await paste(line)).includes('"object":"list"'));
    await page.getByRole('button', { name: 'Done' }).click();
    await page.goto(instance);
    await page.getByRole('heading', { name: 'first steps' }).waitFor();
  });

  it('changes the machine by what the page copies, and sees it change', async () => {
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel('Name', { exact: true }).fill("Ann's first steps");
    const line = await copied('#action', 'curl');
    await page.locator('#action').getByRole('button', { name: 'Cancel' }).click();
    expect(JSON.parse(await paste(line))).toMatchObject({ name: "Ann's first steps" });
    await page.getByRole('heading', { name: "Ann's first steps" }).waitFor();
    await page.getByRole('button', { name: 'Extend' }).click();
    await page.getByLabel('Stop after').fill('3h');
    const extend = await copied('#action', 'curl');
    await page.locator('#action').getByRole('button', { name: 'Cancel' }).click();
    await paste(extend);
    await page.getByText(/in 2 h 5\d min/).waitFor();
    const log = await copied('section[aria-labelledby="events-title"]', 'curl');
    expect(JSON.parse(await paste(log))).toMatchObject({ object: 'list' });
  });

  it('changes it with kubectl, as the page copies it', async () => {
    const { programs = '', kubeconfig } = inject('cluster');
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel('Name', { exact: true }).fill('by kubectl');
    const line = await copied('#action', 'kubectl');
    await page.locator('#action').getByRole('button', { name: 'Cancel' }).click();
    const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${programs}:${process.env['PATH']}` };
    await run('bash', ['-c', line], { env });
    await page.getByRole('heading', { name: 'by kubectl' }).waitFor();
  });

  it('gives the machine back', async () => {
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.locator('#action').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'This instance is gone' }).waitFor({ timeout: 60_000 });
    await page.getByText(/^It cost \$0\.\d+ in all\.$/).waitFor();
    await look('journey-gone');
    expect((await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items).toEqual([]);
    expect(view.complaints.filter((text) => !/status of (?:401|403|404|409)/.test(text))).toEqual([]);
  }, 70_000);
});
