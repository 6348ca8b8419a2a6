import { setTimeout as delay } from 'node:timers/promises';
import { TENANT } from '../e2e/support/release.ts';
import { login, runOver, type SshIdentity, type SshPlace } from '../e2e/support/ssh.ts';
import type { Accepted } from './accepted.ts';
import { type Log, PAUSE, WrongAnswer } from './record.ts';

export interface LoadOptions {
  log: Log;
  /** Where the HTTP interface is, without a path. */
  base: string;
  token: string;
  identity: SshIdentity;
  /** Address of the SSH gateway. */
  ssh: { host: string; port: number };
  /** The GPUs of the real node, and how many it has. Berth must never offer more. */
  product: string;
  gpus: number;
  accepted: Accepted;
  /** Asks the API server, until it answers, for the uid of an instance; undefined when there is no such instance. */
  lookUp: (id: string) => Promise<string | undefined>;
  /** Ends the load. What is under way is finished first. */
  stopping: AbortSignal;
  /** The time at which the run gives up. */
  deadline: AbortSignal;
}

/** Milliseconds that an interruptible instance is kept. */
const KEPT = 45_000;

interface Request {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

interface Answer {
  status: number;
  body: Record<string, unknown>;
}

/** What is rented, in the words of the HTTP interface. */
interface Wanted {
  type?: 0 | 1;
  gpus?: number;
  on_no_capacity?: 'fail' | 'queue';
}

/** A tenant that uses the HTTP interface, and checks every answer. */
export class Customer {
  readonly #options: LoadOptions;
  /** Instances that the tenant has and did not delete: id -> uid. */
  readonly alive = new Map<string, string>();
  created = 0;
  full = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  async #fetch(signal: AbortSignal, path: string, init: Request = {}): Promise<Response> {
    const { base, token } = this.#options;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...init.headers };
    const response = await fetch(`${base}/api/v1${path}`, { ...init, headers, signal });
    // The key is valid during the whole run.
    if (response.status === 401 || response.status === 403) throw new WrongAnswer(`${path}: ${response.status}`);
    return response;
  }

  async #ask(signal: AbortSignal, path: string, init: Request = {}): Promise<Answer> {
    const response = await this.#fetch(signal, path, init);
    const body = (await response.json()) as Answer['body'];
    if (response.status >= 500) throw new Error(`${response.status} ${JSON.stringify(body['error'])}`);
    return { status: response.status, body };
  }

  /** Rents a place; undefined when there is none. Retries have the same key, so that they rent no second one. */
  async rent(name: string, { gpus = 1, ...wanted }: Wanted = {}): Promise<string | undefined> {
    const { log, lookUp, deadline, product, accepted } = this.#options;
    const init = {
      method: 'POST',
      headers: { 'idempotency-key': name },
      body: JSON.stringify({ name, disk_gb: 1, gpu: { name: product, count: gpus }, ...wanted }),
    };
    const answer = await log.insist('HTTP', deadline, (signal) => this.#ask(signal, '/instances', init));
    if (answer.status === 409 && (answer.body['error'] as { code?: string }).code === 'offer_unavailable') {
      this.full += 1;
      return undefined;
    }
    const id = String(answer.body['id']);
    const uid = answer.status === 201 ? await lookUp(id) : undefined;
    if (uid === undefined || answer.body['name'] !== name || this.alive.has(id)) {
      log.wrong.push(`POST of ${name}: ${answer.status} ${JSON.stringify(answer.body)}, at the API server: ${uid}`);
      return undefined;
    }
    this.created += 1;
    this.alive.set(id, uid);
    accepted.add(uid, `${TENANT}/${id}`, { interruptible: wanted.type === 1 });
    return id;
  }

  /** The record of an instance that the tenant has. */
  async #read(signal: AbortSignal, id: string): Promise<Record<string, unknown>> {
    const { status, body } = await this.#ask(signal, `/instances/${id}`);
    if (status !== 200 || body['id'] !== id) throw new WrongAnswer(`GET of ${id}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** Waits until the instance runs, and returns its SSH address; undefined when the instance failed. */
  async running(id: string): Promise<SshPlace | undefined> {
    const { log, deadline, ssh } = this.#options;
    for (;;) {
      const record = await log.insist('HTTP', deadline, (signal) => this.#read(signal, id));
      if (record['state'] === 'running') {
        const { user, known_hosts: hostKey } = record['ssh'] as { user: string; known_hosts: string };
        return { ...ssh, user, hostKey };
      }
      if (record['state'] === 'failed') {
        log.wrong.push(`${id} failed: ${String(record['message'])}`);
        return undefined;
      }
      await delay(PAUSE, undefined, { signal: deadline });
    }
  }

  /** Logs in and runs one command. */
  async enter(place: SshPlace, signal: AbortSignal): Promise<true> {
    const session = await login(place, this.#options.identity, signal);
    try {
      const word = String(Math.random());
      const output = await runOver(session, `echo ${word}`);
      if (output !== `${word}\n`) throw new WrongAnswer(`${place.user}: echo ${word} printed ${output}`);
      return true;
    } finally {
      session.destroy();
    }
  }

  /** Deletes an instance and waits until it is gone. */
  async giveBack(id: string): Promise<void> {
    const { log, lookUp, deadline, accepted } = this.#options;
    const uid = await lookUp(id);
    accepted.letGo(this.alive.get(id) ?? '');
    if (uid !== this.alive.get(id)) log.wrong.push(`${id} is lost: ${uid} instead of ${this.alive.get(id)}`);
    let tries = 0;
    await log.insist('HTTP', deadline, async (signal) => {
      const { status } = await this.#ask(signal, `/instances/${id}`, { method: 'DELETE' });
      // It may be gone already after a request whose answer was lost, and only then.
      if (status !== 200 && (tries === 0 || status !== 404)) throw new WrongAnswer(`DELETE of ${id}: ${status}`);
      tries += 1;
      return true;
    });
    this.alive.delete(id);
    await log.insist('HTTP', deadline, async (signal) => {
      const { status } = await this.#ask(signal, `/instances/${id}`);
      return status === 404 ? true : undefined;
    });
    if ((await lookUp(id)) !== undefined) log.wrong.push(`GET of ${id} answered 404 and the instance is there`);
  }

  /** How many GPUs of a product are offered one by one. */
  async offered(signal: AbortSignal, product = this.#options.product): Promise<number> {
    const { status, body } = await this.#ask(signal, '/offers');
    const offers = body['data'] as { gpu_name: string; gpu_count: number; available: number }[];
    const ones = offers.filter((offer) => offer.gpu_count === 1 && offer.gpu_name === product);
    const free = ones.reduce((sum, offer) => sum + offer.available, 0);
    if (status !== 200 || free > this.#options.gpus) throw new WrongAnswer(`${status}: ${free} GPUs offered`);
    return free;
  }

  async chat(signal: AbortSignal): Promise<true> {
    const request = { model: 'tiny-random', messages: [{ role: 'user', content: 'Say hello' }], max_tokens: 8 };
    const { status, body } = await this.#ask(signal, '/chat/completions', {
      method: 'POST',
      body: JSON.stringify(request),
    });
    const [choice] = (body['choices'] as { message?: { content?: unknown } }[] | undefined) ?? [];
    const good = body['model'] === 'tiny-random' && typeof choice?.message?.content === 'string';
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
    if (!good) throw new WrongAnswer(`the model answered ${JSON.stringify(body)}`);
    return true;
  }

  async streamedChat(signal: AbortSignal): Promise<true> {
    const request = {
      model: 'tiny-random',
      messages: [{ role: 'user', content: 'Say it' }],
      max_tokens: 8,
      stream: true,
    };
    const response = await this.#fetch(signal, '/chat/completions', { method: 'POST', body: JSON.stringify(request) });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} ${text}`);
    const hasError = text.includes('"error"');
    // A stream that ends without an error must be whole.
    if (!hasError && !text.trimEnd().endsWith('data: [DONE]'))
      throw new WrongAnswer(`a stream ended with ${text.slice(-200)}`);
    if (hasError) throw new Error(`the stream ended with an error: ${text.slice(-200)}`);
    return true;
  }
}

/** Rents an instance, logs in and deletes it, again and again. */
async function churn(customer: Customer, { log, stopping }: LoadOptions, worker: string): Promise<void> {
  for (let round = 0; !stopping.aborted; round++) {
    const id = await customer.rent(`${worker}-${round}`);
    if (id !== undefined) {
      const place = await customer.running(id);
      if (place !== undefined) await log.call('SSH', (signal) => customer.enter(place, signal));
      await customer.giveBack(id);
    }
    await delay(PAUSE);
  }
}

/** Rents an interruptible instance for some time, again and again. It waits in line when there is no place. */
async function interruptible(customer: Customer, { stopping }: LoadOptions, worker: string): Promise<void> {
  for (let round = 0; !stopping.aborted; round++) {
    const id = await customer.rent(`${worker}-${round}`, { type: 1, on_no_capacity: 'queue' });
    await delay(KEPT, undefined, { signal: stopping }).catch(() => undefined);
    if (id !== undefined) await customer.giveBack(id);
    await delay(PAUSE);
  }
}

/** Rents two GPUs on demand, again and again: interruptible instances give way. */
async function displacing(customer: Customer, { stopping }: LoadOptions): Promise<void> {
  for (let round = 0; !stopping.aborted; round++) {
    const id = await customer.rent(`displacing-${round}`, { gpus: 2, on_no_capacity: 'queue' });
    if (id !== undefined) {
      await customer.running(id);
      await customer.giveBack(id);
    }
    await delay(KEPT / 6, undefined, { signal: stopping }).catch(() => undefined);
  }
}

async function repeat(stopping: AbortSignal, work: () => Promise<unknown>): Promise<void> {
  while (!stopping.aborted) {
    await work();
    await delay(PAUSE);
  }
}

/**
 * The steady load: three workers rent and delete instances, three have interruptible ones, and one displaces them. Others
 * log in to one instance, ask for offers, and call a model.
 */
export async function runLoad(customer: Customer, options: LoadOptions, resident: SshPlace): Promise<void> {
  const { log, stopping } = options;
  await Promise.all([
    ...['a', 'b', 'c'].map((worker) => churn(customer, options, worker)),
    ...['spot-a', 'spot-b', 'spot-c'].map((worker) => interruptible(customer, options, worker)),
    displacing(customer, options),
    repeat(stopping, () => log.call('SSH', (signal) => customer.enter(resident, signal))),
    repeat(stopping, () => log.call('HTTP', (signal) => customer.offered(signal))),
    repeat(stopping, () => log.call('model', (signal) => customer.chat(signal))),
    repeat(stopping, () => log.call('model', (signal) => customer.streamedChat(signal))),
  ]);
}
