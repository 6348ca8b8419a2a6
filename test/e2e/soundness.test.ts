import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { tryDoctor } from './support/doctor.ts';
import { tryWebhook } from './support/webhooks.ts';
import { World } from './support/world.ts';

describe('a live installation', () => {
  let world: World;

  beforeAll(async () => {
    world = await World.open(inject('e2e'));
  });
  afterAll(() => world.client.close());

  it('has nothing for berth doctor to find while it is sound, and each fault that is planted', () => tryDoctor(world));

  it('tells a webhook what happens, and calls nothing inside', () => tryWebhook(world));
});
