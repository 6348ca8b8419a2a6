import { ATTACKS, type AttackName } from './attacks.ts';
import type { Target } from './world.ts';

// A process that attacks: `attacker.ts NAME`, the target as JSON in $TARGET. It says `ready` when it is in position, and
// is ended by its parent.

const attack = ATTACKS[process.argv[2] as AttackName];
process.on('uncaughtException', () => undefined);
process.on('unhandledRejection', () => undefined);
await attack(JSON.parse(process.env['TARGET'] ?? '') as Target);
console.log('ready');
setInterval(() => undefined, 1000);
