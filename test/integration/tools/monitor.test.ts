import { join } from 'node:path';
import { expect, it } from 'vitest';
import { goEnvironment } from '../../../tools/lib/go/build.ts';
import { requireGo } from '../../../tools/lib/go/find.ts';
import { cacheFolder, ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { describeWith } from '../../support/needs.ts';

const TIMEOUT_MS = 300_000;

// Go is where the programs for the real node are built.
describeWith('real node')('the exporter of instances', () => {
  it(
    'reads what nvidia-smi, rocm-smi and the kernel write',
    async () => {
      const options = { cwd: join(ROOT, 'deploy/tools'), env: goEnvironment(cacheFolder(process.env)) };
      const { code, stdout, stderr } = await run(await requireGo(), ['test', './monitor'], options);
      expect(stdout + stderr).toMatch(/^ok /m);
      expect(code).toBe(0);
    },
    TIMEOUT_MS,
  );
});
