import { describe, expect, it } from 'vitest';
import { programSession } from '../../support/ssh-terminal.ts';
import { waitFor } from '../../support/wait-for.ts';

const TERMINAL = new URL('../../../src/cli/terminal.ts', import.meta.url).href;

/** A program at a terminal that asks what the body asks, and prints what it returns. */
function asking(body: string) {
  const program = `
    const terminal = (await import(${JSON.stringify(TERMINAL)})).processTerminal();
    // Neither a signal nor a terminal that is not read keeps a program alive.
    setInterval(() => undefined, 1000);
    const signal = (name) => new Promise((resolve) => process.once(name, resolve));
    const answers = await (async () => { ${body} })().catch((error) => error.message);
    console.log('answers: ' + JSON.stringify(answers));
    process.exit(0);`;
  return programSession([process.execPath, '--input-type=module', '-e', program], process.env);
}

const TWO = `const first = await terminal.ask('First? '); return [first, await terminal.ask('Second? ')];`;

describe('questions at a terminal', () => {
  it('take two answers that are typed at once', async () => {
    const session = asking(TWO);
    await session.type('', /First\? /);
    await session.type('1\ry\r', /answers: \["1","y"\]/);
    expect(session.screen).toMatch(/Second\? y\r\n/);
  });

  it('take an answer that is begun before its question and ended at it', async () => {
    const session = asking(TWO);
    await session.type('', /First\? /);
    await session.type('1\rye', /Second\? ye/);
    await session.type('s\r', /answers: \["1","yes"\]/);
  });

  it('take an answer that is typed while the program works', async () => {
    const session = asking(`
      const first = await terminal.ask('First? ');
      console.log('working');
      await signal('SIGWINCH');
      return [first, await terminal.ask('Second? ')];`);
    await session.type('', /First\? /);
    await session.type('1\r', /working/);
    await session.type('y\r', /y\r\n/);
    await session.resize(90, 30);
    await waitFor('the answers', () => session.screen.includes('answers: ["1","y"]'));
  });

  it('keep nothing of it for a secret, and nothing beside a secret for a question', async () => {
    const session = asking(`
      const first = await terminal.ask('First? ');
      const key = await terminal.secret('Key: ');
      return [first, key.length, await terminal.ask('Last? ')];`);
    await session.type('', /First\? /);
    await session.type('1\rpasted\rpart', /Key: /);
    await session.type('hunter2\rhunter3\r', /Last\? /);
    await session.type('z\r', /answers: \["1",7,"z"\]/);
    expect(session.screen).not.toContain('hunter');
  });

  it.each([
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
  ])('end with %s, also those after it', async (_name, key) => {
    const session = asking(`
      const messages = [];
      for (const question of ['First? ', 'Second? ']) messages.push(await terminal.ask(question).catch((error) => error.message));
      return messages;`);
    await session.type('', /First\? /);
    await session.type(key, /answers: \["Nothing was done.","Nothing was done."\]/);
  });

  it('leave Ctrl-C between them to the program', async () => {
    const session = asking(`
      const interrupted = signal('SIGINT');
      await terminal.ask('First? ');
      console.log('working');
      return [await interrupted];`);
    await session.type('', /First\? /);
    await session.type('1\r', /working/);
    await session.type('\u0003', /answers: \["SIGINT"\]/);
  });
});
