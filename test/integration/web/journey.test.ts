import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { launchBrowser } from '../../support/browser/browser.ts';
import { account, BERTH_EDIT, KEY_RIGHTS } from '../../support/accounts.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { describeWith } from '../../support/needs.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';
import { serveModel } from '../../support/serve-model.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

const run = promisify(execFile);
const PICTURES = process.env['BERTH_PICTURES'] ?? join(ROOT, '.berth/pictures');

/** As `npm start` leaves it: all of Berth in one process, a real node, and somebody with a token. */
describeWith(
  'real node',
  'chromium',
  'curl',
)('somebody who never saw it', () => {
  let tenant: TestNamespace;
  let engine: ScriptedEngine;
  let berth: BerthProcess;
  let browser: Browser;
  let page: Page;
  let url: string;
  let apiKey: string;
  const complaints: string[] = [];

  beforeAll(async () => {
    const { kubeconfig } = inject('cluster');
    tenant = await testNamespace();
    const own = await tenant.home();
    engine = await serveModel({ client: tenant.client, name: own }, { models: ['small'] });
    engine.behave({ kind: 'answer', reply: { text: 'A berth is a place for a ship.' } });
    berth = await startBerth(kubeconfig, 'all', own);
    url = berth.url.replace('127.0.0.1', 'localhost');
    const token = await account(tenant.client, tenant.name, 'newcomer', [...BERTH_EDIT, ...KEY_RIGHTS]);
    mkdirSync(PICTURES, { recursive: true });
    browser = await launchBrowser();
    page = await browser.newPage({ viewport: { width: 1180, height: 1100 }, reducedMotion: 'reduce' });
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${url}/dashboard`);
    await page.getByLabel('Kubernetes token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor();
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    for (const one of [berth, tenant]) await one[Symbol.asyncDispose]();
    await engine.close();
  });

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

  it('rents a machine, and sees what it costs before and after', async () => {
    await page.getByRole('link', { name: 'Rent', exact: true }).click();
    await page.getByRole('button', { name: 'Rent 1 × NVIDIA-L4', exact: true }).click();
    await page.locator('#rent').getByLabel('Name', { exact: true }).fill('first steps');
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
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(PICTURES, `terminal-${colorScheme}.png`), animations: 'disabled' });
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
      expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
    }
    await page.emulateMedia({ colorScheme: 'light' });
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
    await page.getByRole('img', { name: /^Memory of the last hour, now / }).waitFor({ timeout: 60_000 });
    await page.screenshot({ path: join(PICTURES, 'connected.png'), fullPage: true });
  });

  it('asks a model', async () => {
    const instance = page.url();
    await page.getByRole('link', { name: 'Models', exact: true }).click();
    await page.getByRole('row', { name: /small/ }).getByText('1 ready').waitFor();
    await page.getByRole('button', { name: 'Send' }).click();
    const answer = page.getByRole('region', { name: 'Answer' });
    await answer.filter({ hasText: 'A berth is a place for a ship.' }).waitFor();
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
    expect((await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items).toEqual([]);
    expect(complaints.filter((text) => !/status of (?:401|403|404|409)/.test(text))).toEqual([]);
  }, 70_000);
});
