import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { beforeEach, expect, it } from 'vitest';
import { FIRST_WINDOW } from '../../../src/direct/credited-output.ts';
import { DirectLink } from '../../../src/direct/direct-link.ts';
import { FROM_POD, TO_POD } from '../../../src/direct/frames.ts';
import { NO_TURN } from '../../../src/lib/byte-turns.ts';
import { FairBytes } from '../../../src/lib/shares.ts';
import { socketOf } from '../../../src/ports/link-socket.ts';
import { DirectPod } from '../../support/direct-pod.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';

let pod: DirectPod;
let link: DirectLink;

beforeEach(() => {
  pod = new DirectPod();
  link = new DirectLink(pod.wire, fakeClock(), { portion: new FairBytes(0).of('team'), turn: NO_TURN });
});

function open() {
  return socketOf(link.open({ port: 7000 }), NO_TURN);
}

it('carries bytes both ways, from before it is open', async () => {
  const socket = open();
  socket.write('ping');
  await settle();
  expect(pod.of(TO_POD.open).map(({ payload }) => String(payload))).toEqual(['{"port":7000}']);
  expect(pod.of(TO_POD.input)).toMatchObject([{ payload: Buffer.from('ping') }]);
  pod.sendNumber(FROM_POD.opened, 1, 0);
  pod.send(FROM_POD.stdout, 1, Buffer.from('pong'));
  expect(String((await once(socket, 'data'))[0])).toBe('pong');
});

it('ends when the pod ends its half, and lets go of the other half', async () => {
  const socket = open();
  pod.sendNumber(FROM_POD.opened, 1, 0);
  pod.send(FROM_POD.stdout, 1, Buffer.from('all of it'));
  pod.send(FROM_POD.outputEnd, 1);
  expect(await text(socket)).toBe('all of it');
  await waitFor('its end', () => socket.destroyed);
  expect(socket.errored).toBeNull();
  await waitFor('the pod to hear', () => pod.of(TO_POD.close).length === 1);
  expect(pod.of(TO_POD.end)).toHaveLength(1);
});

it('sends all that was written before it ended', async () => {
  const socket = open();
  pod.sendNumber(FROM_POD.opened, 1, 0);
  socket.end(Buffer.alloc(300_000));
  await waitFor('the end', () => pod.of(TO_POD.end).length === 1);
  expect(pod.of(TO_POD.input).reduce((sum, { payload }) => sum + payload.length, 0)).toBe(300_000);
  expect(socket.destroyed).toBe(false);
  pod.send(FROM_POD.stdout, 1, Buffer.from('answer'));
  pod.send(FROM_POD.outputEnd, 1);
  expect(await text(socket)).toBe('answer');
});

it('says why the port does not answer', async () => {
  const socket = open();
  pod.send(FROM_POD.failed, 1, Buffer.from('connection refused'));
  await waitFor('its end', () => socket.destroyed);
  expect(socket.errored).toMatchObject({ message: 'connection refused' });
});

it('breaks off with the link', async () => {
  const socket = open();
  pod.sendNumber(FROM_POD.opened, 1, 0);
  pod.hangUp();
  await waitFor('its end', () => socket.destroyed);
  expect(socket.errored).toMatchObject({ message: 'The instance closed it.' });
});

it('lets the pod send no more than its user reads', async () => {
  const socket = open();
  pod.sendNumber(FROM_POD.opened, 1, 0);
  const granted = (): number => pod.of(TO_POD.credit).reduce((sum, { payload }) => sum + payload.readUInt32BE(1), 0);
  pod.send(FROM_POD.stdout, 1, Buffer.alloc(FIRST_WINDOW));
  await settle();
  await settle();
  // What waits in the socket itself is taken, and as much again in the channel is not.
  const first = granted();
  expect(first).toBeLessThanOrEqual(FIRST_WINDOW);
  pod.send(FROM_POD.stdout, 1, Buffer.alloc(first));
  await settle();
  await settle();
  expect(granted()).toBeLessThan(first + FIRST_WINDOW);
  socket.resume();
  await waitFor('more', () => granted() >= first + FIRST_WINDOW / 4);
});

it('takes the connection in the pod along when it is destroyed', async () => {
  const socket = open();
  pod.sendNumber(FROM_POD.opened, 1, 0);
  await settle();
  socket.destroy();
  await waitFor('the pod to hear', () => pod.of(TO_POD.close).length === 1);
  expect(link.isOpen).toBe(true);
});
