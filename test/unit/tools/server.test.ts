import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { environmentFile } from '../../../tools/cluster/supervisor/server.ts';
import { run } from '../../../tools/lib/shell.ts';

it('writes values that a shell reads as they are, and finds kubectl by', async () => {
  const folder = mkdtempSync(join(tmpdir(), "berth's place "));
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  writeFileSync(
    join(programs, 'berth-probe'),
    '#!/bin/sh\nprintf "%s\\n" "$BERTH_URL" "$BERTH_API_KEY" "$KUBECONFIG"\n',
    {
      mode: 0o755,
    },
  );
  const kubeconfig = `${folder}/kubeconfig:/$HOME/"x"`;
  writeFileSync(join(folder, 'local.env'), environmentFile({ url: 'http://u/v1', apiKey: 'k', kubeconfig, programs }));
  const script = 'set -ae; . "$1/local.env"; set +a; berth-probe';
  expect(await run('sh', ['-c', script, 'sh', folder])).toEqual({
    code: 0,
    stdout: `http://u/v1\nk\n${kubeconfig}\n`,
    stderr: '',
  });
  rmSync(folder, { recursive: true });
});
