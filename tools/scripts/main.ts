import { join } from 'node:path';
import { inspectHost } from '../cluster/bring-up.ts';
import { readOptions } from '../cluster/options.ts';
import { chooseWay } from '../cluster/ways.ts';
import { runMain } from '../lib/failure.ts';
import { ThisHost } from '../lib/host/host.ts';
import { consentOf } from '../lib/host/meet-needs.ts';
import { cacheFolder, stateFolder } from '../lib/paths.ts';
import { terminalProgress } from '../lib/progress.ts';
import { prepareScript } from './prepare.ts';

// What bootstrap.mjs runs before a script that needs more than npm packages. Arguments: the script's name, and those that
// the script was called with.

const [script = '', ...args] = process.argv.slice(2);

async function requireCluster(): Promise<void> {
  const { given, built } = readOptions([], process.env, join(stateFolder(), 'kubeconfig'));
  chooseWay(await inspectHost({ given, built, cache: cacheFolder(process.env) }));
}

await runMain(async () => {
  const { yes, interactive } = consentOf(args, process.env);
  // A person who names some tests is not asked about the needs of all the others.
  const isWhole = args.every((arg) => arg === '--yes');
  const consent = { yes, interactive: interactive && isWhole };
  await prepareScript(script, { ...consent, host: new ThisHost(terminalProgress()), requireCluster });
});
