import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { AlreadyExistsError } from '../../src/kube/errors.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { ROOT } from '../../tools/lib/paths.ts';

const PLURALS: Readonly<Record<string, string>> = {
  PriorityLevelConfiguration: 'prioritylevelconfigurations',
  FlowSchema: 'flowschemas',
};

/** The places that the chart gives creations of instances in the API server. Others may have made them, and they stay. */
export async function addRentalFlow(client: KubeClient): Promise<KubeObject> {
  const documents = parseAllDocuments(readFileSync(join(ROOT, 'deploy/base/shared.yaml'), 'utf8'));
  const objects = documents.map((document) => document.toJS() as KubeObject & { kind: string; apiVersion: string });
  for (const object of objects) {
    const plural = PLURALS[object.kind];
    if (plural === undefined) continue;
    await client.raw('POST', `/apis/${object.apiVersion}/${plural}`, object).catch((error: unknown) => {
      if (!(error instanceof AlreadyExistsError)) throw error;
    });
  }
  return client.raw<KubeObject>('GET', '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/berth-rentals');
}
