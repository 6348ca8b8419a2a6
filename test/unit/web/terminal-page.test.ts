import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { accessWhile } from '../../support/access.ts';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { personSigningKey, publicPart } from '../../../src/access/person-token.ts';
import { People } from '../../../src/http/interface/auth/people.ts';
import { TerminalGateway } from '../../../src/http/features/terminal/pass-on.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { buildPage } from '../../../tools/lib/page.ts';
import { frame } from '../../support/channel-server.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { describeWith } from '../../support/needs.ts';
import { shell, terminalWorld, type TerminalWorld, VIEW } from '../../support/terminal-world.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Every person may do everything. */
const client = {
  raw: (_method: string, path: string) =>
    Promise.resolve(
      path.endsWith('/tokenreviews')
        ? {
            status: { authenticated: true, user: { username: 'system:serviceaccount:team:ann' }, audiences: ['berth'] },
          }
        : { status: { allowed: true } },
    ),
  list: () => Promise.resolve({ items: [] }),
} as unknown as Partial<KubeClient>;

function running(): GpuInstance {
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'Running',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const made = gpuInstance('i-one', {}, { claim: claimOn('node-1'), conditions: [ready] } as never);
  return { ...made, metadata: { ...made.metadata, namespace: 'team' } };
}

const built = (name: string): Buffer => readFileSync(new URL(`../../../src/web/public/built/${name}`, import.meta.url));

describeWith('chromium')('the terminal in the page', () => {
  let browser: Browser;
  let page: Page;
  let api: LoneApi;
  let world: TerminalWorld;
  const requested: string[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    await buildPage();
    const clock = systemClock();
    const key = publicPart(personSigningKey(Buffer.alloc(32, 1)));
    const people = new People({
      readKey: () => Promise.resolve(key),
      vouch: () => Promise.reject(new Error('there is no dashboard')),
      clock,
    });
    world = await terminalWorld({
      clock,
      callers: {
        find: (token) => people.find(token),
        refusal: () => undefined,
        open: (caller) => accessWhile().access.open(caller, { scope: 'compute:write' }),
      },
    });
    const terminals = new TerminalGateway(new URL(`http://127.0.0.1:${world.server.address.port}`));
    api = await startLoneApi({ tenants: ['team'], instances: [running()], client, clock, terminals });
    browser = await launchBrowser();
    page = await browser.newPage({ viewport: { width: 1180, height: 1100 }, reducedMotion: 'reduce' });
    page.setDefaultTimeout(STEP_MS);
    page.on('request', (request) => requested.push(request.url()));
    page.on('websocket', (socket) => requested.push(socket.url()));
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`http://localhost:${api.address.port}/dashboard/instances/i-one`);
    await page.getByLabel('Kubernetes token').fill('opaque');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Open terminal' }).waitFor();
  }, 60_000);
  afterAll(async () => {
    await browser.close();
    await api.close();
    await world[Symbol.asyncDispose]();
  });

  // Blanks of a terminal are such that no browser folds them.
  const screen = async (): Promise<string> => (await page.locator('.xterm-rows').innerText()).replaceAll('\u00A0', ' ');
  const shows = (text: string) => waitFor(`the screen to show ${text}`, async () => (await screen()).includes(text));

  it('is loaded when somebody opens it, and the rest of the page is small', async () => {
    expect(requested.filter((url) => /screen\.js|xterm/.test(url))).toEqual([]);
    expect(gzipSync(built('app.js')).length).toBeLessThan(200_000);
    expect(built('app.js').includes('xterm-rows')).toBe(false);
    await page.getByRole('button', { name: 'Open terminal' }).click();
    await shows('$');
    expect(requested.filter((url) => url.endsWith('screen.js'))).toHaveLength(1);
  });

  it('has no token in its address, and a size', () => {
    const socket = requested.find((url) => url.startsWith('ws:')) ?? '';
    expect(socket).toMatch(/\/api\/v1\/instances\/i-one\/terminal\?columns=\d+&rows=\d+$/);
    expect(Number(/columns=(\d+)/.exec(socket)?.[1])).toBeGreaterThan(80);
  });

  it('types, and shows what programs write with their colours', async () => {
    await page.keyboard.type('echo é ');
    await shows('echo é');
    world.kubelet.onStream = shell;
    await page.keyboard.insertText('\u001B[38;2;255;0;0mred\u001B[0m');
    await shows('red');
    const colours = await page.evaluate(
      "[...document.querySelectorAll('.xterm-rows span')].filter((one) => one.textContent === 'red').map((one) => getComputedStyle(one).color)",
    );
    expect(colours).toEqual(['rgb(255, 0, 0)']);
  });

  it('sets markup that a program writes as text', async () => {
    await page.keyboard.insertText(`<img src=x onerror="document.title='owned'">`);
    await shows('<img src=x');
    expect(await page.title()).not.toBe('owned');
  });

  it('changes its size with the window', async () => {
    await page.setViewportSize({ width: 700, height: 1100 });
    await shows('size {"Width":');
    await page.setViewportSize({ width: 1180, height: 1100 });
  });

  it('lets a person out by keyboard, and has nothing for axe to find', async () => {
    await page.locator('.xterm-helper-textarea').focus();
    await page.keyboard.press('Shift+F6');
    expect(await page.evaluate('document.activeElement?.textContent')).toBe('Close terminal');
    await page.evaluate(axe.source);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
      expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
    }
  });

  it('says that the shell ended, and opens another', async () => {
    await page.locator('.xterm-helper-textarea').focus();
    // After a key that went up elsewhere, the library waits for one that it sees go up.
    await page.keyboard.press('x');
    await page.keyboard.insertText('exit');
    await page.getByText('The shell ended.').waitFor();
    await page.getByRole('button', { name: 'Open again' }).click();
    await shows('$');
  });

  it('paints a flood without falling behind, and stays usable', async () => {
    const [total, part] = [4 * 1024 * 1024, 64 * 1024];
    await page.getByRole('button', { name: 'Close terminal' }).click();
    world.kubelet.onStream = (stream) => {
      shell(stream);
      stream.on('message', (data: Buffer) => {
        if (data.length !== 2 || data[1] !== 70) return;
        for (let at = 0; at < total; at += part) stream.send(frame(1, `${'x'.repeat(79)}\n`.repeat(part / 80)));
        stream.send(frame(1, '\r\nend of the flood'));
      });
    };
    await page.getByRole('button', { name: 'Open terminal' }).click();
    await shows('$');
    await page.keyboard.type('F');
    await shows('end of the flood');
  });

  it('says why it ended when the instance stops, and when it cannot be opened', async () => {
    world.instance.view = { ...VIEW, target: undefined };
    world.changed();
    await page.getByRole('alert').filter({ hasText: 'Instance i-one is stopped' }).waitFor();
    await page.getByRole('button', { name: 'Open again' }).click();
    await page.getByRole('alert').filter({ hasText: 'Instance i-one is stopped' }).waitFor();
    world.instance.view = VIEW;
  });

  it('broke no policy and threw no error', () => {
    expect(complaints.filter((text) => !/status of (?:401|409|426)|WebSocket/.test(text))).toEqual([]);
  });
});
