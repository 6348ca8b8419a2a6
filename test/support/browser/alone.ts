// Starts the browser of BERTH_BROWSER in this network namespace, with a port on its loopback that leads to the socket of
// BERTH_BROWSER_PROXY.
import { execFileSync, spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';
import { PROXY_PORT } from './proxy-port.ts';

const { BERTH_BROWSER: browser = '', BERTH_BROWSER_PROXY: proxy = '' } = process.env;
/** Playwright speaks with the browser through the last two. */
const STDIO = ['inherit', 'inherit', 'inherit', 3, 4] as const;

execFileSync('ip', ['link', 'set', 'lo', 'up']);
createServer((one) => {
  const other = connect(proxy);
  pipeline(one, other, one, () => undefined);
}).listen(PROXY_PORT, '127.0.0.1', () => {
  spawn(browser, process.argv.slice(2), { stdio: [...STDIO] }).once('exit', (code) => process.exit(code ?? 1));
});
