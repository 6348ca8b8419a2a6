import { mkdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { findEngine } from '../cluster/kind/engine.ts';
import { LocalFailure, runMain } from '../lib/failure.ts';
import { ensurePrograms } from '../lib/go/build.ts';
import { findStaticBusybox } from '../lib/host/requirements.ts';
import { cacheFolder, ROOT } from '../lib/paths.ts';
import { terminalProgress } from '../lib/progress.ts';
import { quoteWord } from '../lib/shell.ts';
import { ensureGoTools, NETWORK_POLICIES } from '../release/go-tools.ts';
import { ensureNode } from './node.ts';
import { kindPrograms } from './programs.ts';

await runMain(async () => {
  const progress = terminalProgress();
  const { signal } = new AbortController();
  const cache = cacheFolder(process.env);
  process.env['CONTAINERS_CONF'] ??= join(ROOT, 'deploy/kind/containers.conf');
  const engine = await findEngine();
  if (engine === undefined) throw new LocalFailure('Neither Docker nor Podman answers.', 'Install podman.');
  const busybox = await findStaticBusybox();
  if (busybox === undefined) throw new LocalFailure('There is no static busybox.', 'Install busybox-static.');
  const programs = await ensurePrograms({ cache, cluster: 'real node', tidy: false, progress, signal });
  const tools = await ensureGoTools({ cache, label: 'kind', programs: kindPrograms(), progress, signal });
  const network = await ensureGoTools({ cache, label: 'network', programs: [NETWORK_POLICIES], progress, signal });
  const policies = join(network, NETWORK_POLICIES.name);
  const image = await ensureNode({ engine, cache, programs, tools, policies, busybox, progress });
  // kind mounts it into its nodes. A machine whose kernel has no modules may lack it.
  await mkdir('/lib/modules', { recursive: true });
  const path = [tools, programs].map(quoteWord).join(delimiter);
  const lines = [
    `export BERTH_KIND_IMAGE=${quoteWord(image)}`,
    `export CONTAINERS_CONF=${quoteWord(process.env['CONTAINERS_CONF'] ?? '')}`,
    `export PATH=${path}:"$PATH"`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
});
