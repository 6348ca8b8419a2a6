import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { kwokStages } from '../../../tools/cluster/built/kwok-stages.ts';

const stage = (name: string): string => `kind: Stage\nmetadata:\n  name: ${name}\n`;

test('a pod that kwok plays ends before it is deleted', () => {
  const text = kwokStages([stage('pod-ready'), stage('pod-delete'), stage('pod-complete')].join('\n---\n'));
  const stages = parseAllDocuments(text).map((one) => one.toJS() as { metadata: { name: string }; spec?: object });
  expect(stages.map(({ metadata }) => metadata.name)).toEqual(['pod-ready', 'pod-complete', 'pod-end', 'pod-delete']);
  const ended = { key: '.status.phase', operator: 'In', values: ['Succeeded', 'Failed'] };
  expect(stages[3]?.spec).toMatchObject({ selector: { matchExpressions: [{}, ended] }, next: { delete: true } });
});
