import type { GpuInstanceSpec } from '../../../resources/instances/gpu-instance.ts';
import type { Runtype, TemplateContent } from '../../../resources/instance-template.ts';

/** What an instance runs, with template and defaults applied. */
export interface Settings {
  image: string;
  runtype: Runtype;
  command: readonly string[];
  args: readonly string[];
  onStart: string;
  env: readonly { name: string; value: string }[];
  imagePullSecrets: readonly { name: string }[];
  ports: NonNullable<GpuInstanceSpec['ports']>;
  diskGb: number;
}

const DEFAULT_DISK_GB = 10;

type Variables = NonNullable<GpuInstanceSpec['env']>;

function mergeEnv(template: Variables, own: Variables): Settings['env'] {
  const merged = new Map([...template, ...own].map(({ name, value = '' }) => [name, value]));
  return [...merged].map(([name, value]) => ({ name, value }));
}

function firstText(...values: (string | undefined)[]): string {
  return values.find((value) => value !== undefined && value !== '') ?? '';
}

/** Values of the instance win over those of the template. env is merged name by name. */
export function settingsOf(
  spec: GpuInstanceSpec,
  template: TemplateContent | undefined,
  defaultImage: string,
): Settings {
  return {
    image: firstText(spec.image, template?.image, defaultImage),
    runtype: spec.runtype ?? template?.runtype ?? 'ssh',
    command: spec.command ?? template?.command ?? [],
    args: spec.args ?? template?.args ?? [],
    onStart: spec.onStart ?? template?.onStart ?? '',
    env: mergeEnv(template?.env ?? [], spec.env ?? []),
    imagePullSecrets: spec.imagePullSecrets ?? template?.imagePullSecrets ?? [],
    ports: spec.ports ?? template?.ports ?? [],
    diskGb: spec.diskGb ?? template?.diskGb ?? DEFAULT_DISK_GB,
  };
}
