#!/usr/bin/env node
import { EXIT } from './failure.ts';
import { createKubeSession, splitGlobal } from './kube/kube-session.ts';
import { runCli } from './main.ts';
import { onSignals } from './signals.ts';
import { processTerminal } from './terminal.ts';
import { ownVersion } from './version.ts';

const { flags, words } = splitGlobal(process.argv.slice(2));
const { session, close } = createKubeSession(process.env, processTerminal(), flags);
// A command that has its own answer to Ctrl-C, such as ssh, ends by itself.
onSignals((signal) => {
  if (process.listenerCount(signal) === 1) void close().finally(() => process.exit(EXIT.interrupted));
});
const code = await runCli(words, { session, version: ownVersion });
await close().catch((error: unknown) => session.terminal.say(`berth: ${String(error)}`));
process.exit(code);
