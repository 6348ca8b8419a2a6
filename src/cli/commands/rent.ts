import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Api } from '../api/client.ts';
import { insist } from '../api/client.ts';
import { ApiFailure } from '../api/failures.ts';
import { hasPlace } from '../../wire/has-place.ts';
import { hourlyPrice } from '../../wire/hourly-price.ts';
import type { FoundOffer, InstanceRecord } from '../../wire/records.ts';
import { idOfNamed } from '../api/find-named.ts';
import { CliFailure, EXIT, usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import { lifeOf, present, programOf } from '../rent/body.ts';
import { chooseOffer, offerKey } from '../rent/choose.ts';
import { followStart } from '../rent/progress.ts';
import { offersFor } from '../rent/search.ts';
import { confirm, printJson, type Session } from '../session.ts';
import { onSignals } from '../signals.ts';
import { plain } from '../text.ts';
import { kindOf, offerTable, priceOf } from './offers.ts';

/** Options that choose an offer. Without all of them a person at a terminal is asked. */
const CHOICE = ['offer', 'gpu', 'gpus', 'memory', 'max-price', 'yes', 'queue', 'json'];

function isBare(input: Input): boolean {
  return !CHOICE.some((name) => input.text(name) !== undefined || input.flag(name));
}

/** The program of a run would never begin. */
export function onlySimulated(): CliFailure {
  return new CliFailure('Only simulated nodes have GPUs that fit, and no program runs there.', {
    exitCode: EXIT.noCapacity,
    next: 'berth offers --all says in its notes which offers are simulated.',
  });
}

/** Who names a GPU means a whole one where there is one, and not a slice of it that is free meanwhile. */
function meant(found: readonly FoundOffer[], input: Input): readonly FoundOffer[] {
  if (input.text('gpu') === undefined || input.text('kind') !== undefined || input.text('offer') !== undefined)
    return found;
  const whole = found.filter(({ isolation }) => isolation === 'whole');
  return whole.length > 0 ? whole : found;
}

/** The offer to rent: the one that is named or chosen, else the cheapest free one. */
async function wantedOffer(
  all: readonly FoundOffer[],
  input: Input,
  session: Session,
): Promise<FoundOffer | undefined> {
  const found = meant(all, input);
  const id = input.number('offer');
  if (id !== undefined) {
    const named = found.find((offer) => offer.id === id);
    if (named !== undefined) return named;
    throw new CliFailure(`There is no offer ${id} that fits.`, {
      exitCode: EXIT.noCapacity,
      next: 'berth offers lists them.',
    });
  }
  const isFree = (offer: FoundOffer): boolean => hasPlace(offer, input.flag('interruptible'));
  const free = found.filter(isFree);
  if (free.length > 1 && isBare(input) && session.terminal.interactive) {
    return await chooseOffer(session, free, input.flag('interruptible'));
  }
  if (free.length > 0 || input.flag('queue')) return free[0];
  if (found.length === 0)
    throw new CliFailure('No offer fits.', { exitCode: EXIT.noCapacity, next: 'berth offers --all lists all offers.' });
  const slice = all.find(isFree);
  if (slice !== undefined) {
    const next = `A part of one is free (${kindOf(slice)}): add --kind ${slice.isolation === 'mig' ? 'mig' : 'time-sliced'}. Or wait in line with --queue.`;
    throw new CliFailure('No whole GPU of this name is free.', { exitCode: EXIT.noCapacity, next });
  }
  throw new CliFailure('No offer that fits has a free place.', {
    exitCode: EXIT.noCapacity,
    next: 'berth offers --all shows what is taken. Add --queue to wait in line.',
  });
}

/** Which GPUs to wait for when no place is free now: any of the kind that would do. */
function gpuOf(found: readonly FoundOffer[], input: Input): Record<string, unknown> {
  const [cheapest] = found;
  if (cheapest === undefined) {
    throw new CliFailure('No offer fits, so there is nothing to wait for.', {
      exitCode: EXIT.noCapacity,
      next: 'berth offers --all lists all of them.',
    });
  }
  const { gpu_name: name, gpu_count: count, isolation, mig_profile: profile } = cheapest;
  return {
    name: input.text('gpu') === undefined ? undefined : name,
    count,
    isolation,
    ...(profile && { mig_profile: profile }),
  };
}

/** The body of a rental, without its place. */
export async function bodyOf(input: Input, session: Session): Promise<Record<string, unknown>> {
  const template = input.text('template');
  return present({
    ...(await programOf(input, session.env)),
    ...lifeOf(input),
    type: input.flag('interruptible') ? 1 : undefined,
    template_id:
      template === undefined ? undefined : Number(await idOfNamed(await session.api(), 'template', template)),
    template_image: input.text('image'),
    install_monitoring: input.flag('monitoring') || undefined,
    run_as_root: input.flag('root') || undefined,
    disk_policy: input.flag('keep-disk') ? 'retain' : undefined,
    on_no_capacity: input.flag('queue') ? 'queue' : undefined,
  });
}

/** Rents, and tries again with the same Idempotency-Key when the connection is lost: nothing is rented twice. */
async function create(api: Api, body: Record<string, unknown>, session: Session): Promise<InstanceRecord> {
  const headers = { 'idempotency-key': randomUUID() };
  try {
    return await insist(() => api.call<InstanceRecord>('POST', '/instances', { body, headers }), session.sleep);
  } catch (error) {
    if (error instanceof ApiFailure && error.alternatives.length > 0) {
      const view = { width: session.terminal.columns.say };
      session.terminal.say(`Free offers that are near:\n${offerTable(error.alternatives, view).trimEnd()}`);
    }
    throw error;
  }
}

/**
 * Calls what rents, and says whether Ctrl-C came meanwhile. It waits for the answer then: nothing is to be rented whose id
 * nobody was told. A second Ctrl-C ends the program.
 */
async function untilAnswered<T>(call: () => Promise<T>, { terminal }: Session): Promise<[T, isInterrupted: boolean]> {
  let signals = 0;
  const end = onSignals(() => {
    signals += 1;
    if (signals === 1)
      return terminal.say('The server was asked, and answers in a moment. Ctrl-C again does not wait.');
    terminal.say('Something may be rented: berth ls lists it.');
    process.exit(EXIT.interrupted);
  });
  try {
    return [await call(), signals > 0];
  } finally {
    end();
  }
}

/** The offer that the person sees, for no more than its price: the operator may change it before the answer. */
function placeOf(offer: FoundOffer, input: Input): Record<string, unknown> {
  return { ask_id: offer.id, max_price_per_hour: hourlyPrice(offer, input.flag('interruptible')) };
}

/** Asks for what is not given, and rents. `before` runs once the person has said yes; `runs` takes no simulated offer. */
export async function rentWith(
  input: Input,
  session: Session,
  { body, before, runs }: { body: Record<string, unknown>; before?: (api: Api) => Promise<void>; runs?: boolean },
): Promise<{ api: Api; created: InstanceRecord; isInterrupted: boolean }> {
  const { terminal } = session;
  const api = await session.api();
  const all = await offersFor(api, input);
  const found = runs ? all.filter(({ simulated }) => !simulated) : all;
  if (found.length < all.length && found.length === 0) throw onlySimulated();
  const offer = await wantedOffer(found, input, session);
  const what =
    offer === undefined
      ? 'Wait in line, and rent'
      : `Rent ${offer.gpu_count} x ${plain(offer.gpu_name)}${offer.isolation === 'whole' ? '' : ` (${kindOf(offer)})`} for ${priceOf(offer, input.flag('interruptible'))} per hour`;
  const place = offer === undefined ? { gpu: gpuOf(meant(found, input), input) } : placeOf(offer, input);
  if (input.flag('yes')) terminal.say(`${what}.`);
  if (!(await confirm(session, `${what}?`, input.flag('yes')))) throw new CliFailure('Nothing was rented.');
  await before?.(api);
  const [created, isInterrupted] = await untilAnswered(() => create(api, { ...place, ...body }, session), session);
  terminal.say(`Rented ${created.id}.`);
  for (const warning of created.warnings) terminal.say(`Warning: ${plain(warning)}`);
  return { api, created, isInterrupted };
}

/** `berth rent`: rents an instance, and tells about its start until a login works. */
export async function rent(input: Input, session: Session): Promise<number | void> {
  const body = await bodyOf(input, session);
  if (input.rest.length > 0 && input.text('runtype') !== undefined && input.text('runtype') !== 'args') {
    const next = 'Leave --runtype out: these words mean --runtype args.';
    throw usageFailure('The words after -- are for the image of an instance with --runtype args.', next);
  }
  const hasLogin = body['args'] === undefined && input.text('runtype') !== 'args';
  const enters = input.flag('ssh') || input.flag('code');
  if (enters && input.flag('no-wait'))
    throw usageFailure(
      '--no-wait does not wait for a login.',
      'Leave it out, or log in later with berth ssh INSTANCE.',
    );
  const { api, created, isInterrupted } = await rentWith(input, session, {
    body,
    ...(hasLogin && { before: (found: Api) => offerKey(found, session) }),
  });
  if (isInterrupted) throw staysRented(created.id);
  const record = input.flag('no-wait') ? created : await waitFor(api, created, session);
  await printRented(session, record, input);
  if (input.flag('code')) await (await import('./code.ts')).openFolder(record, '/workspace', input, session);
  if (input.flag('ssh')) return await (await import('./ssh.ts')).logIn(record, { ...input, rest: [] }, session);
}

function staysRented(id: string): CliFailure {
  const next = `berth show ${id} says how far it is, and berth rm ${id} gives it back.`;
  return new CliFailure(`${id} stays rented and keeps starting.`, { exitCode: EXIT.interrupted, next });
}

/** Follows the start, until Ctrl-C: that ends the following alone. */
async function waitFor(api: Api, { id }: InstanceRecord, session: Session): Promise<InstanceRecord> {
  const left = new AbortController();
  const leave = (): void => left.abort();
  const interrupted = once(left.signal, 'abort').then(() => {
    throw staysRented(id);
  });
  process.once('SIGINT', leave);
  try {
    return await Promise.race([followStart(api, id, session), interrupted]);
  } finally {
    process.removeListener('SIGINT', leave);
  }
}

async function printRented(session: Session, record: InstanceRecord, input: Input): Promise<void> {
  if (input.flag('json')) return printJson(session, record);
  if (record.simulated) session.terminal.say('Its node is simulated: no container runs there.');
  else if (record.ssh !== null) session.terminal.say(`Log in with: berth ssh ${plain(record.id)}`);
  await session.terminal.out(`${plain(record.id)}\n`);
}
