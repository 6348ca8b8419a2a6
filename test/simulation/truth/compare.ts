import { isDeepStrictEqual } from 'node:util';
import type { Json } from '../../../src/lib/json.ts';
import { comparable, nameOf, type Outcome } from './outcome.ts';
import { Performer, type Side, type Watched, type WatchLine } from './side.ts';
import { isMarker, type KindName, type Step } from './steps.ts';

/** Two sides that answer otherwise: at a step, or in what the watch of that step told. */
export interface Difference {
  step: Step;
  model: unknown;
  truth: unknown;
}

interface Told {
  type: string;
  name: string;
  object: Json;
}

const INITIAL_END = 'k8s.io/initial-events-end';

function toldOf(kind: KindName, { type, object }: WatchLine): Told[] {
  if (type === 'ERROR') return [{ type, name: '', object: { code: object['code'] } }];
  const { annotations } = object['metadata'] as { annotations?: Json };
  if (type === 'BOOKMARK') return annotations?.[INITIAL_END] === undefined ? [] : [{ type, name: '', object: {} }];
  const name = nameOf(object);
  return isMarker(name) ? [] : [{ type, name, object: comparable(kind, object) }];
}

function byName(told: readonly Told[]): Told[] {
  return told.toSorted((a, b) => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1));
}

function isAbout({ name }: Told): (told: Told) => boolean {
  return (told) => told.name === name;
}

/** What a watch told. The order is that of each object where the cluster itself had a part in it, else that of all. */
function heardBy({ kind, lines }: Watched, isOfEach: boolean): Told[] {
  const all = lines.flatMap((line) => toldOf(kind, line));
  // A write that changes nothing that is compared may be of one side alone.
  const told = all.filter((one, index) => !isDeepStrictEqual(one, all.slice(0, index).findLast(isAbout(one))));
  const initial = told.findIndex(({ type }) => type === 'BOOKMARK');
  if (isOfEach) return [...byName(told.slice(0, initial + 1)), ...byName(told.slice(initial + 1))];
  return [...byName(told.slice(0, initial + 1)), ...told.slice(initial + 1)];
}

interface Performed {
  outcomes: readonly Outcome[];
  watches: readonly Watched[];
}

/** Puts steps to a side, as long as they come to what another side came to. */
async function performed(side: Side, steps: readonly Step[], other: Performed | undefined): Promise<Performed> {
  const performer = new Performer(side);
  const outcomes: Outcome[] = [];
  for (const [index, step] of steps.entries()) {
    const expected = other?.outcomes[index];
    const outcome = await performer.perform(step, expected);
    outcomes.push(outcome);
    if (other !== undefined && !isDeepStrictEqual(outcome, expected)) return { outcomes, watches: [] };
  }
  await side.heard(
    performer.watches,
    other?.watches.map((watched) => heardBy(watched, false).length),
  );
  return { outcomes, watches: performer.watches };
}

/** The first difference between what some steps come to on the model and on a real API server. */
export async function differenceOf(model: Side, truth: Side, steps: readonly Step[]): Promise<Difference | undefined> {
  const expected = await performed(model, steps, undefined);
  const found = await performed(truth, steps, expected);
  for (const [index, outcome] of found.outcomes.entries()) {
    const [step, wanted] = [steps[index], expected.outcomes[index]];
    if (step !== undefined && !isDeepStrictEqual(outcome, wanted)) return { step, model: wanted, truth: outcome };
  }
  const isOfEach = steps.some(({ rests }) => rests === true);
  const watching = steps.filter((step) => step.do === 'watch');
  for (const [index, watched] of found.watches.entries()) {
    const other = expected.watches[index];
    const step = watching[index];
    if (other === undefined || step === undefined) continue;
    const [wanted, heard] = [heardBy(other, isOfEach), heardBy(watched, isOfEach)];
    if (!isDeepStrictEqual(heard, wanted)) return { step, model: wanted, truth: heard };
  }
  return undefined;
}
