#!/usr/bin/env node
import { runProcess } from './process.ts';

process.exit(await runProcess(process.argv.slice(2)));
