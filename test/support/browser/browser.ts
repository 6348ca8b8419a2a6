import { spawnSync } from 'node:child_process';
import { connect, createServer, type Socket } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { type Browser, chromium } from 'playwright-core';
import { findProgram } from '../../../tools/lib/shell.ts';

/** Milliseconds that one step on a page may take on a busy machine. A test waits longer for all of its steps. */
export const STEP_MS = 60_000;

const ALONE = join(import.meta.dirname, 'alone.sh');
/** On the loopback of the browser's network, where nothing else listens. */
const PORT = 1080;

/** Leads one connection of the browser to where it asks for: as much of SOCKS 5 (RFC 1928) as a browser speaks. */
function serve(browser: Socket): void {
  browser.on('error', () => browser.destroy());
  browser.once('data', () => {
    browser.write(Buffer.from([5, 0]));
    browser.once('data', (asked: Buffer) => {
      browser.pause();
      const server = connect({ ...addressOf(asked), noDelay: true });
      server.once('error', () => browser.destroy());
      server.once('connect', () => {
        browser.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
        pipeline(browser, server, browser, () => undefined);
      });
    });
  });
}

const [IPV4, NAME] = [1, 3];

function addressOf(asked: Buffer): { host: string; port: number } {
  const port = asked.readUInt16BE(asked.length - 2);
  const address = asked.subarray(4, -2);
  if (asked[3] === IPV4) return { host: address.join('.'), port };
  if (asked[3] !== NAME) throw new Error(`The browser asked for an address of kind ${asked[3]}.`);
  const name = address.subarray(1).toString();
  return { host: name.endsWith('.localhost') ? 'localhost' : name, port };
}

/**
 * A chromium that other tests do not disturb. Clusters that start and stop change the addresses of this machine, and at
 * each such change a browser breaks off what it is connecting to (ERR_NETWORK_CHANGED). So it gets a network with no
 * interface but its own loopback, and reaches this one's through a proxy. Where the user may not make networks there are
 * no such clusters, and the browser is an ordinary one.
 */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = (await findProgram('chromium')) ?? '';
  const args = ['--no-sandbox'];
  if (spawnSync('unshare', ['--net', 'true']).status !== 0) return chromium.launch({ executablePath, args });
  const folder = mkdtempSync(join(tmpdir(), 'berth-browser-'));
  const socket = join(folder, 'proxy');
  const open = new Set<Socket>();
  const proxy = createServer((one) => {
    open.add(one);
    one.once('close', () => open.delete(one));
    serve(one);
  });
  await new Promise<void>((resolve) => proxy.listen(socket, resolve));
  const browser = await chromium.launch({
    executablePath: ALONE,
    args: [...args, `--proxy-server=socks5://127.0.0.1:${PORT}`, '--proxy-bypass-list=<-loopback>'],
    env: {
      ...process.env,
      BERTH_NODE: process.execPath,
      BERTH_BROWSER: executablePath,
      BERTH_BROWSER_PROXY: socket,
      BERTH_BROWSER_PORT: String(PORT),
    },
  });
  browser.once('disconnected', () => {
    proxy.close();
    for (const one of open) one.destroy();
    rmSync(folder, { recursive: true, force: true });
  });
  return browser;
}
