import { describe, expect, it } from 'vitest';
import { run } from '../../../tools/lib/shell.ts';
import { tourOf, type TourFacts, type TourOffer } from '../../../tools/cluster/tour.ts';

const SIMULATED: TourOffer = {
  id: 5,
  gpu_name: 'NVIDIA-H100',
  gpu_count: 1,
  isolation: 'whole',
  simulated: true,
  available: 2,
};
const REAL: TourOffer = {
  id: 6,
  gpu_name: 'NVIDIA-L4',
  gpu_count: 1,
  isolation: 'whole',
  simulated: false,
  available: 2,
};
const SERVER = {
  url: 'http://127.0.0.1:1/api/v1',
  apiKey: 'key',
  sshPort: 2,
  metricsPort: 3,
  envFile: '/s/local.env',
  signIn: undefined,
};

function facts(offers: TourOffer[]): TourFacts {
  return {
    nodes: 'Some nodes.',
    kubeconfig: '/s/kubeconfig',
    programs: '/p',
    state: '/s',
    ownImages: true,
    server: { ...SERVER, offers },
  };
}

describe('the tour', () => {
  it('rents an offer that is free, and logs in only where containers are real', () => {
    const simulated = tourOf(facts([{ ...SIMULATED, id: 4, available: 0 }, SIMULATED]));
    expect(simulated).toContain('--offer 5 ');
    expect(simulated).not.toContain('berth ssh');
    expect(tourOf(facts([SIMULATED, REAL]))).toMatch(/--offer 6 [^]*--image localhost[^]*berth ssh -i/);
    const pulled = tourOf({ ...facts([SIMULATED, REAL]), ownImages: false });
    expect(pulled).toContain('--image debian:12 --yes');
  });

  it('shows where everything is', () => {
    const tour = tourOf(facts([SIMULATED]));
    for (const value of [SERVER.url, SERVER.apiKey, '/s/kubeconfig', '/s/local.env', 'port 2'])
      expect(tour).toContain(value);
  });

  it('has the link that signs in, and for a given cluster the command that makes a token', () => {
    const given = facts([SIMULATED]);
    expect(tourOf(given)).toContain('kubectl create token NAME --audience=berth');
    const tour = tourOf({ ...given, server: { ...SERVER, offers: [], signIn: 'http://localhost:1/dashboard#code=x' } });
    expect(tour).toContain('http://localhost:1/dashboard#code=x\n');
    expect(tour).toContain('npm run sign-in');
  });

  it('consists of lines that a shell can read one by one', async () => {
    const lines =
      tourOf(facts([SIMULATED, REAL]))
        .split('line by line:')[1]
        ?.split('\n') ?? [];
    expect(lines.length).toBeGreaterThan(15);
    for (const line of lines) expect(await run('bash', ['-nc', line]), line).toMatchObject({ code: 0, stderr: '' });
  });
});
