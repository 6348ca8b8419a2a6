import { runMain } from '../lib/failure.ts';
import { buildPage } from '../lib/page.ts';

await runMain(buildPage);
