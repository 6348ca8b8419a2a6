#!/usr/bin/env node
import { createKubeSession, splitGlobal } from './kube/kube-session.ts';
import { runCli } from './main.ts';
import { processTerminal } from './terminal.ts';
import { ownVersion } from './version.ts';

const { flags, words } = splitGlobal(process.argv.slice(2));
const { session, close } = createKubeSession(process.env, processTerminal(), flags);
const code = await runCli(words, { session, version: ownVersion });
await close().catch((error: unknown) => session.terminal.say(`berth: ${String(error)}`));
process.exit(code);
