import { afterAll } from 'vitest';
import { endProcesses } from '../support/berth-process.ts';

// Registered before the hooks of a file, and so run after them.
afterAll(endProcesses, 60_000);
