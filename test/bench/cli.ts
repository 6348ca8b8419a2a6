import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packCli } from '../../src/http/features/cli/package.ts';
import { run } from '../../tools/lib/shell.ts';

// How long `berth` takes to start: the package that every server hands out, beside a program of Node that does nothing.

const TIMES = Number(process.argv[2] ?? 20);

const server = createServer((_request, response) => response.end('{"object":"list","data":[]}'));
await once(server.listen(0, '127.0.0.1'), 'listening');
const folder = mkdtempSync(join(tmpdir(), 'berth-bench-cli-'));
try {
  writeFileSync(join(folder, 'berth.tgz'), packCli().content);
  await run('tar', ['-xzf', 'berth.tgz'], { cwd: folder });
  const program = join(folder, 'package/cli/berth.js');
  const { port } = server.address() as AddressInfo;
  const env = { ...process.env, HOME: folder, BERTH_URL: `http://127.0.0.1:${port}`, BERTH_API_KEY: 'key' };
  const rows: Readonly<Record<string, readonly string[]>> = {
    'node -e 0': ['-e', '0'],
    'berth --version': [program, '--version'],
    'berth help': [program, 'help'],
    'berth ls': [program, 'ls'],
  };
  const taken = Object.fromEntries(Object.keys(rows).map((name): [string, number[]] => [name, []]));
  // In turns, so that what else the machine does is the same for all.
  for (let time = 0; time < TIMES; time += 1) {
    for (const [name, args] of Object.entries(rows)) {
      const began = performance.now();
      const child = spawn(process.execPath, args, { env, stdio: 'ignore' });
      const [code] = await once(child, 'close');
      if (code !== 0) throw new Error(`${name} ended with ${String(code)}`);
      taken[name]?.push(performance.now() - began);
    }
  }
  console.log(`Milliseconds from the start of a program to its end, ${TIMES} times\n`);
  console.log('                     least  median');
  for (const [name, times] of Object.entries(taken)) {
    const sorted = times.toSorted((a, b) => a - b);
    const numbers = [sorted[0], sorted[Math.floor(sorted.length / 2)]];
    console.log(`${name.padEnd(20)}${numbers.map((ms = 0) => ms.toFixed(0).padStart(6)).join('  ')}`);
  }
} finally {
  server.close();
  rmSync(folder, { recursive: true });
}
