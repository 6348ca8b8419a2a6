import { randomBytes } from 'node:crypto';
import { type Api, isPassing } from '../api/client.ts';
import { ApiFailure, isBroken } from '../api/failures.ts';
import { findInstance, instancePath } from '../api/find-instance.ts';
import { followLog, lineOf, noticeOf } from '../api/follow-log.ts';
import { CliFailure, EXIT, usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import { followStart } from '../rent/progress.ts';
import {
  fetchFiles,
  requireEmpty,
  requireFolder,
  requireTar,
  requireWritable,
  uploadFolder,
  waitsForFiles,
} from '../run/files.ts';
import { nonceOf, readLine, runScript } from '../run/script.ts';
import type { Session } from '../session.ts';
import { onSignals } from '../signals.ts';
import type { ServerEvent } from '../../wire/event-stream.ts';
import { plainJson } from '../../wire/plain.ts';
import { logLine, plain } from '../text.ts';
import { bodyOf, onlySimulated, rentWith } from './rent.ts';

/** A program that runs in an instance of its own. */
interface Run {
  api: Api;
  id: string;
  nonce: string;
  /** Ends what follows the run. */
  left: AbortController;
  /** Whether the program may have begun, so that its work may be worth something. */
  hasBegun: boolean;
}

/** Lines at the beginning: a client that comes back sees all that is left. */
const ALL_LINES = '10000';
/** Attempts to copy files, and to give the instance back. */
const ATTEMPTS = 30;

/** Attempts while a server says that the instance does not run: the roles hear at other times that it does. */
const PLACELESS_ATTEMPTS = 5;

/** Whether nothing of the instance runs, as when others took its place. */
function isPlaceless(error: unknown): boolean {
  return error instanceof ApiFailure && error.code === 'instance_not_running';
}

/** Calls again, two seconds later, what failed because a replica or the connection went. */
async function persist<T>(call: () => Promise<T>, { sleep }: Session, signal?: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      const most = isPlaceless(error) ? PLACELESS_ATTEMPTS : isPassing(error) || isBroken(error) ? ATTEMPTS : 1;
      if (attempt >= most || signal?.aborted) throw error;
      await sleep(2000);
    }
  }
}

/** What Ctrl-C means, as the person says: `goOn` resolves while nobody is asked. */
class Interrupts {
  readonly decided: Promise<'leave' | 'give back'>;
  goOn: Promise<void> = Promise.resolve();
  readonly #session: Session;
  readonly #id: string;
  #decide: (what: 'leave' | 'give back') => void = () => undefined;
  #isAsking = false;
  readonly end: () => void;

  constructor(session: Session, id: string) {
    this.#session = session;
    this.#id = id;
    this.decided = new Promise((resolve) => (this.#decide = resolve));
    this.end = onSignals((signal) => void this.#onSignal(signal));
  }

  /** Where nobody can be asked, as when a job of a pipeline is cancelled, the GPU goes back. */
  async #onSignal(signal: NodeJS.Signals): Promise<void> {
    const { terminal } = this.#session;
    if (!terminal.interactive || signal === 'SIGTERM') return this.#decide('give back');
    if (this.#isAsking) return;
    this.#isAsking = true;
    let goOn: () => void = () => undefined;
    this.goOn = new Promise((resolve) => (goOn = resolve));
    const question = `\n${this.#id} runs. Stop it and give it back (s), leave it running (l), or continue (Enter)? `;
    const answer = (await terminal.ask(question).catch(() => 'l')).trim().toLowerCase();
    this.#isAsking = false;
    if (answer.startsWith('s')) this.#decide('give back');
    else if (answer.startsWith('l')) this.#decide('leave');
    else goOn();
  }
}

/**
 * Prints what the program wrote and does what the run asks for, until the program has ended. Returns its exit status. The log
 * is at the next line then.
 */
async function followRun(
  run: Run,
  { log, interrupts }: { log: AsyncGenerator<ServerEvent>; interrupts: Interrupts },
  input: Input,
  session: Session,
): Promise<number> {
  const { terminal } = session;
  const { id, nonce } = run;
  let last = 'The log ended.';
  for (let next = await log.next(); next.done !== true; next = await log.next()) {
    const event = next.value;
    await interrupts.goOn;
    const line = lineOf(event);
    last = noticeOf(event) ?? last;
    if (line === undefined) {
      if (event.type !== 'end' && noticeOf(event) !== undefined) terminal.say(plain(last));
      continue;
    }
    run.hasBegun ||= input.text('upload') === undefined;
    const { text, mark } = readLine(line.text, nonce);
    const shown = terminal.screen ? logLine(text) : text;
    const json = `${plainJson({ ...line, text })}\n`;
    if (mark === undefined || text !== '')
      await terminal.out(input.flag('json') ? json : `${shown}${mark === undefined ? '\n' : ''}`);
    if (mark?.asks === 'fetch') return mark.status;
    if (mark?.asks === 'upload') await upload(run, input, session);
    run.hasBegun ||= mark?.asks === 'upload';
  }
  throw new CliFailure(`The end of the program is not known. ${plain(last)}`, {
    exitCode: EXIT.lost,
    next: `berth events ${id} tells its history.`,
  });
}

/** Brings the files that the run asks for, unless it has them: also where only the answer to that was lost. */
async function upload({ api, id, left, hasBegun }: Run, input: Input, session: Session): Promise<void> {
  const folder = input.text('upload');
  const bring = async (): Promise<number | undefined> => {
    if (!(await waitsForFiles({ api, id }))) return undefined;
    if (folder === undefined)
      throw usageFailure(`${id} waits for files.`, `Run berth run --attach ${id} --upload FOLDER.`);
    return await uploadFolder({ api, id }, folder, input.texts('exclude'));
  };
  const bytes = await persist(bring, session, left.signal).catch((error: unknown) => {
    // Others have its place: the next start asks again if it needs files.
    if (hasBegun && isPlaceless(error)) return undefined;
    throw error;
  });
  if (folder !== undefined && bytes !== undefined)
    session.terminal.say(`Uploaded ${plain(folder)}: ${(bytes / 1e6).toFixed(1)} MB.`);
}

/** Gives the instance back. Says so loudly where that fails: it is still billed. */
async function giveBack({ api, id }: Pick<Run, 'api' | 'id'>, session: Session): Promise<void> {
  const remove = (): Promise<unknown> => api.call('DELETE', instancePath(id));
  await persist(remove, session).catch((error: unknown) => {
    if (error instanceof ApiFailure && error.status === 404) return;
    const why = error instanceof Error ? error.message : String(error);
    throw new CliFailure(`${id} is STILL RENTED: it could not be given back. ${why}`, {
      exitCode: EXIT.lost,
      next: `Run berth rm ${id}.`,
    });
  });
  session.terminal.say(`${id} is given back.`);
}

/**
 * Fetches what the program wrote. Where that fails the instance stays for some minutes, so that nothing is lost. Rejects as
 * the server does where nothing of it runs.
 */
async function fetchOutput({ api, id, left }: Run, input: Input, session: Session): Promise<string | undefined> {
  if (input.flag('no-fetch')) return undefined;
  const folder = input.text('output') ?? `berth-${id}`;
  const isWritten = await persist(() => fetchFiles({ api, id }, folder), session, left.signal).catch(
    (error: unknown) => {
      if (isPlaceless(error)) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new CliFailure(`The files of the program were not fetched: ${why}`, {
        exitCode: EXIT.lost,
        next: `${id} stays for ten minutes: berth run --attach ${id} tries again, and berth rm ${id} gives it back.`,
      });
    },
  );
  if (!isWritten) return undefined;
  session.terminal.say(`The files of the program are in ${plain(folder)}.`);
  return folder;
}

/** How the program ended, and the folder of its files. */
interface Outcome {
  status: number;
  output: string | undefined;
}

/** Brings a run to its end: the program, its files, and the end of the rental. Returns the exit status of the program. */
async function finish(run: Run, input: Input, session: Session): Promise<number> {
  const interrupts = new Interrupts(session, run.id);
  const { api, left } = run;
  const query = new URLSearchParams({ tail: ALL_LINES });
  const log = followLog(api, { id: run.id, query, signal: left.signal }, session);
  const work = async (): Promise<Outcome> => {
    const failure = run.hasBegun ? undefined : await start(run, input, session);
    for (;;) {
      const status = await followRun(run, { log, interrupts }, input, session).catch((error: unknown) => {
        throw run.hasBegun ? error : (failure ?? error);
      });
      try {
        return { status, output: await fetchOutput(run, input, session) };
      } catch (error) {
        // Others took its place meanwhile. Its disk stays, and the next start says the end again.
        if (!isPlaceless(error)) throw error;
      }
    }
  };
  const working = work();
  working.catch(() => undefined);
  try {
    const outcome = await Promise.race([working, interrupts.decided]);
    if (outcome === 'leave') {
      throw new CliFailure(`${run.id} keeps running. It ends by itself ten minutes after its program.`, {
        exitCode: EXIT.interrupted,
        next: `berth run --attach ${run.id} comes back to it, and berth rm ${run.id} gives it back.`,
      });
    }
    if (outcome === 'give back') {
      await giveBack(run, session);
      return EXIT.interrupted;
    }
    const { status, output = null } = outcome;
    await giveBack(run, session);
    if (input.flag('json')) await session.terminal.out(`${plainJson({ id: run.id, status, output })}\n`);
    return status;
  } catch (error) {
    const { id } = run;
    if (error instanceof CliFailure && error.exitCode === EXIT.interrupted) throw error;
    if (!run.hasBegun && !isPassing(error)) await giveBack(run, session);
    else if (!(error instanceof CliFailure) || error.exitCode !== EXIT.lost)
      session.terminal.say(
        `${id} keeps running: berth run --attach ${id} comes back to it, and berth rm ${id} gives it back.`,
      );
    throw error;
  } finally {
    left.abort();
    void log.return(undefined);
    interrupts.end();
  }
}

/** Tells about the start. Returns why it failed: a program that ended at once is in the log all the same. */
async function start(run: Run, input: Input, session: Session): Promise<unknown> {
  let isSimulated: boolean;
  try {
    isSimulated = (await followStart(run.api, run.id, session)).simulated;
    run.hasBegun = !isSimulated && input.text('upload') === undefined;
  } catch (error) {
    if (isPassing(error) || error instanceof ApiFailure) throw error;
    return error;
  }
  if (isSimulated) throw onlySimulated();
  return undefined;
}

/** `berth run`: rents an instance for one program, prints what it writes, fetches its files, and gives the instance back. */
export async function run(input: Input, session: Session): Promise<number> {
  const attached = input.text('attach');
  const begun = attached === undefined ? await begin(input, session) : await attach(attached, input, session);
  return await finish({ ...begun, left: new AbortController(), hasBegun: attached !== undefined }, input, session);
}

async function checkFolders(input: Input): Promise<void> {
  const [folder, output] = [input.text('upload'), input.text('output')];
  if (folder !== undefined) await requireFolder(folder);
  if (output !== undefined) await requireEmpty(output);
  if (!input.flag('no-fetch')) await requireWritable(output ?? 'berth-ID');
  if (folder !== undefined || !input.flag('no-fetch')) await requireTar();
}

type Begun = Pick<Run, 'api' | 'id' | 'nonce'>;

async function begin(input: Input, session: Session): Promise<Begun> {
  if (input.rest.length === 0)
    throw usageFailure('berth run needs a program after --.', 'For example: berth run --gpu l4 -- nvidia-smi');
  await checkFolders(input);
  const nonce = randomBytes(8).toString('hex');
  const script = runScript({ nonce, upload: input.text('upload') !== undefined, fetch: !input.flag('no-fetch') });
  const body = { ...(await bodyOf(input, session)), command: ['/bin/sh', '-c', script, 'berth-run'] };
  const { api, created, isInterrupted } = await rentWith(input, session, { body, runs: true });
  const { id } = created;
  if (isInterrupted) {
    await giveBack({ api, id }, session);
    throw new CliFailure('Nothing runs.', { exitCode: EXIT.interrupted });
  }
  return { api, id, nonce };
}

/** Comes back to a run that goes on. */
async function attach(wanted: string, input: Input, session: Session): Promise<Begun> {
  if (input.rest.length > 0)
    throw usageFailure('--attach takes no program: it runs already.', 'Leave out what follows --.');
  await checkFolders(input);
  const api = await session.api();
  const { id, command } = await findInstance(api, wanted);
  const nonce = nonceOf(command);
  if (nonce !== undefined) return { api, id, nonce };
  throw new CliFailure(`${plain(id)} was not rented by berth run.`, {
    next: `berth logs -f ${plain(id)} follows its log.`,
  });
}
