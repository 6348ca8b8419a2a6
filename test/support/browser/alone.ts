// Starts the browser of BERTH_BROWSER in this network namespace, where BERTH_BROWSER_PORT of the loopback leads to the socket
// of BERTH_BROWSER_PROXY.
import { execFileSync, spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';

const { BERTH_BROWSER: browser = '', BERTH_BROWSER_PROXY: proxy = '', BERTH_BROWSER_PORT: port } = process.env;
/** Playwright speaks with the browser through the last two. */
const STDIO = ['inherit', 'inherit', 'inherit', 3, 4] as const;

execFileSync('ip', ['link', 'set', 'lo', 'up']);
createServer((one) => {
  const other = connect(proxy);
  pipeline(one, other, one, () => undefined);
}).listen(Number(port), '127.0.0.1', () => {
  spawn(browser, process.argv.slice(2), { stdio: [...STDIO] }).once('exit', (code) => process.exit(code ?? 1));
});
