import { MODEL_NAME } from './names.ts';

/** An object with the scale subresource. It is in the namespace of the Service that names it. */
export interface ScaleTarget {
  group: string;
  version: string;
  /** Name of the resource, for example `deployments`. */
  plural: string;
  name: string;
}

/** What a Service says about the workload behind it, which may have no replica. */
export interface ScaleSpec {
  target: ScaleTarget;
  /** Replicas after a call came to none. */
  replicas: number;
  /** Seconds without a call until the workload has no replica. */
  idleSeconds: number;
  /** Seconds that a call waits for the first replica. */
  waitSeconds: number;
  /** Names of models that are listed while no replica can be asked, beside those that the last one served. */
  models: readonly string[];
}

export const SCALE_TARGET = 'berth.dev/scale-target';
const REPLICAS = 'berth.dev/scale-replicas';
const IDLE = 'berth.dev/scale-idle-seconds';
const WAIT = 'berth.dev/scale-wait-seconds';
const MODELS = 'berth.dev/model-names';

const NAME = '[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?';
/** `RESOURCE.GROUP/NAME` or, as kubectl has it, `RESOURCE.VERSION.GROUP/NAME`. */
const TARGET = new RegExp(`^([a-z][a-z0-9]{0,62})\\.(?:(v[0-9][a-z0-9]{0,15})\\.)?(${NAME})/(${NAME})$`);
const MODELS_MAX = 64;

// More than three times as long as it takes until every replica of the gateway has told that it has calls.
const IDLE_SECONDS = { least: 60, most: 7 * 86_400, otherwise: 900 } as const;
const WAIT_SECONDS = { least: 1, most: 3600, otherwise: 300 } as const;
const REPLICA_COUNT = { least: 1, most: 1000, otherwise: 1 } as const;

/**
 * Reads the annotations of a Service that make its workload scale to zero. Adds what is wrong with them to `problems`;
 * a wrong number counts as its default.
 *
 * @returns undefined without `berth.dev/scale-target`, or when it cannot be read
 */
export function readScale(annotations: Readonly<Record<string, string>>, problems: string[]): ScaleSpec | undefined {
  const raw = annotations[SCALE_TARGET];
  if (raw === undefined) return undefined;
  const target = readTarget(raw.trim());
  if (target === undefined) {
    problems.push(
      `${SCALE_TARGET} is not RESOURCE.VERSION.GROUP/NAME, for example deployments.v1.apps/qwen or deployments.apps/qwen`,
    );
    return undefined;
  }
  const number = (name: string, bounds: typeof IDLE_SECONDS | typeof WAIT_SECONDS | typeof REPLICA_COUNT): number =>
    readNumber(name, annotations[name], bounds, problems);
  return {
    target,
    replicas: number(REPLICAS, REPLICA_COUNT),
    idleSeconds: number(IDLE, IDLE_SECONDS),
    waitSeconds: number(WAIT, WAIT_SECONDS),
    models: readModels(annotations[MODELS], problems),
  };
}

function readTarget(text: string): ScaleTarget | undefined {
  const [, plural, version, group, , name] = TARGET.exec(text) ?? [];
  if (plural === undefined || group === undefined || name === undefined) return undefined;
  // The version of `apps` has been v1 since Kubernetes 1.9. That of other groups is not for Berth to guess.
  const known = version ?? (group === 'apps' ? 'v1' : undefined);
  return known === undefined ? undefined : { group, version: known, plural, name };
}

function readNumber(
  name: string,
  text: string | undefined,
  { least, most, otherwise }: { least: number; most: number; otherwise: number },
  problems: string[],
): number {
  if (text === undefined) return otherwise;
  const value = Number(text.trim());
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  problems.push(`${name} is not a whole number from ${least} to ${most}`);
  return otherwise;
}

function readModels(text: string | undefined, problems: string[]): string[] {
  const names = (text ?? '').split(',').map((name) => name.trim());
  const good = names.filter((name) => MODEL_NAME.test(name)).slice(0, MODELS_MAX);
  if (good.length < names.filter((name) => name !== '').length)
    problems.push(`${MODELS} is not a list of at most ${MODELS_MAX} names of models`);
  return good;
}
