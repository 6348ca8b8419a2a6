import { endingSignal } from '../../../tools/lib/ending.ts';
import { supervise } from '../../../tools/cluster/supervisor/supervise.ts';
import { cacheFolder } from '../../../tools/lib/paths.ts';

// A supervisor in a process of its own, for tests that end and kill it. Arguments: the state folder, and `server` to run that too.
const [state = '', server] = process.argv.slice(2);
const silent = { step: () => undefined, line: () => undefined, end: () => undefined };
await supervise({
  state,
  cache: cacheFolder(process.env),
  given: false,
  kubeconfig: undefined,
  context: undefined,
  built: false,
  dra: false,
  yes: false,
  interactive: false,
  tidy: false,
  otherMakers: true,
  total: 4,
  progress: silent,
  server: server === 'server' ? { httpPort: undefined, sshPort: undefined } : undefined,
  signal: endingSignal(),
  onReady: (tour) => process.stdout.write(`ready\n${tour}\n`),
});
process.exit(0);
