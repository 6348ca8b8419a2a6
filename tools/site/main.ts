import { join } from 'node:path';
import { build } from 'vitepress';
import { runMain } from '../lib/failure.ts';
import { ROOT } from '../lib/paths.ts';

await runMain(() => build(join(ROOT, 'tools/site')));
