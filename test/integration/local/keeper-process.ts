import { keep } from '../../../src/local/keeper.ts';
import { cacheFolder } from '../../../src/local/paths.ts';

// A keeper in a process of its own, for tests that kill it. Argument: the state folder.
const [state = ''] = process.argv.slice(2);
const controller = new AbortController();
process.on('SIGTERM', () => controller.abort());
const silent = { step: () => undefined, line: () => undefined, end: () => undefined };
await keep({
  state,
  cache: cacheFolder(process.env),
  given: false,
  kubeconfig: undefined,
  context: undefined,
  yes: false,
  interactive: false,
  tidy: false,
  progress: silent,
  server: undefined,
  signal: controller.signal,
  onReady: () => process.stdout.write('ready\n'),
});
process.exit(0);
