import { expect, it } from 'vitest';
import { entrypointOf } from '../../../src/controllers/gpu-instance/decide/pod/container.ts';
import type { Settings } from '../../../src/controllers/gpu-instance/decide/settings.ts';

it.each(['ssh', 'jupyter'])(
  'the script of %s keeps to variables of its own, because programs get those of the user',
  (runtype) => {
    const settings = { runtype, ports: [], onStart: 'echo', command: [], args: [] } as unknown as Settings;
    const script = entrypointOf(settings, true).command?.find((word) => word.includes('\n')) ?? '';
    const names = [...script.matchAll(/(?:^|[\s;{(])([A-Za-z_]\w*)=|for (\w+) in|read -r (\w+)/gm)];
    const assigned = new Set(names.map(([, value, loop, read]) => value ?? loop ?? read ?? ''));
    expect(assigned).toContain('_berth_shell');
    const own = new Set(['PATH', 'JUPYTER_TOKEN', 'GOMAXPROCS', 'IFS']);
    expect([...assigned].filter((name) => !name.startsWith('_berth_') && !own.has(name))).toEqual([]);
  },
);
