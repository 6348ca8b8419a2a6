import type { TestProject } from 'vitest/node';
import type { LocalCluster } from '../../tools/cluster/local-cluster.ts';
import { ThisHost } from '../../tools/lib/host/host.ts';
import { missingOf } from '../../tools/lib/host/meet-needs.ts';
import { plainProgress } from '../../tools/lib/progress.ts';
import { SCRIPT_NEEDS, TEST_PACKAGES } from '../../tools/scripts/needs.ts';
import { shortageOf } from './shortage.ts';

/** Tells the tests of a project what this machine, and their cluster, lack. */
export async function provideNeeds(project: TestProject, cluster?: LocalCluster): Promise<void> {
  const called = process.env['npm_lifecycle_event'] ?? '';
  const script = SCRIPT_NEEDS[called]?.skips === true ? called : 'test';
  const host = new ThisHost(plainProgress());
  const missing = await missingOf(host, SCRIPT_NEEDS[script]?.packages ?? TEST_PACKAGES);
  const way = cluster?.initPid === undefined ? cluster?.way : undefined;
  project.provide('absent', way === undefined ? missing : [...missing, 'real node']);
  project.provide('shortage', await shortageOf({ host, missing, way, script }));
}

/** For projects without a cluster. */
export async function setup(project: TestProject): Promise<void> {
  await provideNeeds(project);
}
