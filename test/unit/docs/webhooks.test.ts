import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signedHeaders, signingSecret } from '../../../src/resources/webhook-signing.ts';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { webhook } from '../../support/notifier-world.ts';
import { waitFor } from '../../support/wait-for.ts';

test('the receiver of docs/use/webhooks.md takes what Berth signs, once, and nothing else', async () => {
  const text = readFileSync(join(ROOT, 'docs/use/webhooks.md'), 'utf8');
  const [, program = ''] = /```js\n([^`]+)```/.exec(text) ?? [];
  const secret = signingSecret(Buffer.alloc(32, 1), webhook());
  const [port = 0] = await freePorts(1);
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], WEBHOOK_SECRET: secret, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (more: string) => (said += more));
  try {
    const body = JSON.stringify({ type: 'instance.ready', timestamp: '', data: { instance_id: 'i-1' } });
    const headers = { ...signedHeaders(secret, { id: 'one', timestamp: Math.floor(Date.now() / 1000), body }) };
    const post = async (sent: string) =>
      (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: sent })).status;
    await waitFor('the receiver', () =>
      fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      ),
    );
    expect([await post(body), await post(body), await post(`${body} `)]).toEqual([204, 204, 401]);
    await waitFor('what it prints', () => said !== '');
    expect(said).toBe('instance.ready i-1\n');
  } finally {
    child.kill();
    await exited;
  }
});
