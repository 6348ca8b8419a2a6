import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CHECKS, type Report } from '../../../src/doctor/examine.ts';
import { byFault, firstOf, named, quoted } from '../../../src/doctor/finding.ts';
import { printJson, printReport } from '../../../src/doctor/print.ts';
import { gpuNode } from '../../support/inventory-world.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { findingsOf, reportOf } from '../../support/sound-installation.ts';

const CONFIRMED = { 'berth.dev/gpu-isolation': 'enforced' };

function reportWith(message: string, remedy = 'kubectl get nodes'): Report {
  const finding = {
    check: 'c',
    severity: 'error',
    reason: 'R',
    objects: [],
    message,
    why: 'Because.',
    remedy,
  } as const;
  return {
    namespace: 'berth-system',
    kubernetes: 'v1.36.2',
    checks: [{ name: 'c', title: 'All is well', findings: [finding] }],
  };
}

test('a sound installation is one line beside the heading', () => {
  expect(printReport(reportOf())).toBe(
    'Berth in namespace berth-system, Kubernetes v1.36.2\n\n20 checks: 20 found nothing. 0 errors, 0 warnings, 0 unknown.\n',
  );
});

test('a finding says what is wrong, why it matters and a command, which stays on one line', () => {
  const long = `kubectl ${'x'.repeat(200)}`;
  const text = printReport(reportWith('Something is wrong.', long));
  expect(text).toContain('not so: All is well\n  error    Something is wrong.\n           Because.\n');
  expect(text.split('\n')).toContain(`           $ ${long}`);
  expect(text).toContain('1 check: 0 found nothing. 1 error, 0 warnings, 0 unknown.');
});

test('nothing that objects of the cluster say reaches the terminal as a command', () => {
  const text = printReport(reportWith('bad \u001b]0;title\u0007 \u009b2J\nnext \u202eturned', 'kubectl \u001b[A'));
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
  expect(text).toContain('bad ?]0;title? ?2J?next');
});

test('values of objects are words of the shell in a command, whatever they are', async () => {
  const taints = [{ key: 'a', value: "x'; touch /tmp/owned; '$(id)`id`", effect: 'NoSchedule' }];
  const [found] = findingsOf({ objects: () => ({ nodes: [gpuNode('gpu-0', { taints, labels: CONFIRMED })] }) });
  const { stdout } = await run('sh', ['-c', (found?.remedy ?? '').replace(/^kubectl/, "printf '%s\\n'")]);
  const patch = stdout.trimEnd().split('\n').at(-1) ?? '';
  expect(JSON.parse(patch)).toMatchObject({ spec: { tolerations: [{ key: 'a', value: taints[0]?.value }] } });
});

test('for programs every finding and the names of the sound checks are JSON', () => {
  const { findings, sound, ...rest } = JSON.parse(printJson(reportWith('Wrong.'))) as Record<string, unknown[]>;
  expect(rest).toEqual({ namespace: 'berth-system', kubernetes: 'v1.36.2' });
  expect(findings).toEqual([
    {
      check: 'c',
      severity: 'error',
      reason: 'R',
      objects: [],
      message: 'Wrong.',
      why: 'Because.',
      remedy: 'kubectl get nodes',
    },
  ]);
  expect(sound).toEqual([]);
});

test('a thousand nodes with one fault are one finding, which names five', () => {
  const nodes = Array.from({ length: 1000 }, (_, index) =>
    gpuNode(`gpu-${String(index).padStart(4, '0')}`, { cordoned: true }),
  );
  const found = findingsOf({ objects: () => ({ nodes }) }).filter(({ reason }) => reason === 'Cordoned');
  expect(found).toHaveLength(1);
  expect(found[0]?.objects).toHaveLength(1000);
  expect(found[0]?.message).toBe('Nodes gpu-0000, gpu-0001, gpu-0002, gpu-0003, gpu-0004 and 995 more: cordoned.');
  expect(found[0]?.remedy).toBe('kubectl uncordon gpu-0000 gpu-0001 gpu-0002 gpu-0003 gpu-0004');
});

test('names, words and groups', () => {
  expect(named(['a', 'b'])).toBe('a, b');
  expect(firstOf(['a', 'b'])).toEqual({ words: 'a b', more: '' });
  expect([quoted('a=b:c-'), quoted("it's"), quoted('')]).toEqual(['a=b:c-', "'it'\\''s'", "''"]);
  expect([
    ...byFault([
      ['x', 1],
      ['y', 2],
      ['x', 3],
    ]),
  ]).toEqual([
    ['x', [1, 3]],
    ['y', [2]],
  ]);
});

test('the manual lists every check, and no other', () => {
  const manual = readFileSync(join(ROOT, 'docs/run/operations.md'), 'utf8');
  const [, section = ''] = /^## `berth doctor`\n(.*)/ms.exec(manual) ?? [];
  const listed = [...section.matchAll(/^\| `([\w-]+)` \| (.*) \|$/gm)].map(([, name, title]) => ({ name, title }));
  expect(listed).toEqual(CHECKS.map(({ name, title }) => ({ name, title })));
});
