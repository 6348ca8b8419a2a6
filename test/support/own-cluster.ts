import { inject } from 'vitest';

// A setup file: each worker runs one file after the other on a cluster of its own, and the workers run side by side.
const worker = Number(process.env['VITEST_POOL_ID']) - 1;
Object.assign(inject('cluster'), inject('clusters')[worker]);
Object.assign(inject('api') ?? {}, inject('apis')?.[worker]);
