import { join } from 'node:path';
import { quoteWord } from '../lib/shell.ts';
import { BUSYBOX_IMAGE } from './built/real-node.ts';

/** The fields of an offer that the tour uses. */
export interface TourOffer {
  id: number;
  gpu_name: string;
  gpu_count: number;
  isolation: string;
  simulated: boolean;
  available: number;
}

/** The values in the lines of the tour. */
export interface TourFacts {
  /** One sentence on what the nodes are. */
  nodes: string;
  kubeconfig: string;
  /** The folder of kubectl, when we built it. */
  programs: string | undefined;
  state: string;
  /** Whether the real node has the small image. */
  ownImages: boolean;
  server?: {
    url: string;
    apiKey: string;
    sshPort: number;
    metricsPort: number;
    envFile: string;
    /** Signs in to the dashboard once; undefined in a cluster that was given. */
    signIn: string | undefined;
    offers: readonly TourOffer[];
  };
}

/** What `npm start` prints when everything runs: addresses, and lines to paste one by one. */
export function tourOf({ nodes, kubeconfig, programs, state, ownImages, server }: TourFacts): string {
  if (server === undefined) {
    const path = programs === undefined ? [] : [`export PATH="$PATH":${quoteWord(programs)}`];
    const lines = [...path, `export KUBECONFIG=${quoteWord(kubeconfig)}`, 'kubectl get nodes'];
    return [nodes, `Kubeconfig  ${kubeconfig}`, '', ...lines].join('\n');
  }
  const { url, apiKey, sshPort, metricsPort, envFile, signIn, offers } = server;
  return [
    '',
    `Berth is running. ${nodes}`,
    '',
    `  Base URL    ${url}`,
    `  API key     ${apiKey}`,
    `  Kubeconfig  ${kubeconfig}`,
    ...dashboardLines(url, signIn),
    `  SSH         127.0.0.1, port ${sshPort}`,
    `  Metrics     http://127.0.0.1:${metricsPort}/metrics`,
    `  Values      ${envFile}`,
    '',
    'Paste this tour into a shell in the checkout, line by line:',
    '',
    '# set the values above as variables, and put kubectl on the PATH',
    `set -a; . ${quoteWord(envFile)}; set +a`,
    '',
    ...install(state, url),
    ...rent(offers),
    ...withKubectl(),
    ...withSsh(state, offers, ownImages ? BUSYBOX_IMAGE : 'debian:12'),
    '# the same over HTTP',
    'curl -sS -H "Authorization: Bearer $BERTH_API_KEY" "$BERTH_URL/offers"; echo',
    '',
  ].join('\n');
}

function dashboardLines(url: string, signIn: string | undefined): string[] {
  if (signIn === undefined)
    return [
      `  Dashboard   ${url.replace(/\/api\/v1$/, '')}/dashboard, with a token of: kubectl create token NAME --audience=berth`,
    ];
  return [`  Dashboard   ${signIn}`, '              signs in once, within a minute; a new link: npm run sign-in'];
}

/** The command line of this server. It takes BERTH_URL and BERTH_API_KEY, so the tour needs no login. */
function install(state: string, url: string): string[] {
  const prefix = join(state, 'cli');
  return [
    '# install the command line that fits the server, here into a folder of its own',
    `npm install --silent --no-audit --no-fund --global --prefix ${quoteWord(prefix)} '${new URL('/cli/berth.tgz', url).href}'`,
    `export PATH=${quoteWord(join(prefix, 'bin'))}:"$PATH"`,
    '',
  ];
}

function rent(offers: readonly TourOffer[]): string[] {
  const free = offers.filter(({ simulated, available }) => simulated && available > 0);
  const offer = free.find(({ isolation, gpu_count: count }) => isolation === 'whole' && count === 1) ?? free[0];
  if (offer === undefined) return ['# no GPU is free', 'berth offers --all', ''];
  return [
    `# list the offers, rent ${offer.gpu_count} x ${offer.gpu_name}, label it, look at it, give it back, list the models`,
    'berth offers',
    `ID=$(berth rent --offer ${offer.id} --name tour --yes); echo "$ID"`,
    'berth set "$ID" --label mine',
    'berth show "$ID"',
    'berth rm "$ID" --yes',
    'berth models',
    '',
  ];
}

function withKubectl(): string[] {
  return [
    '# rent with kubectl',
    'kubectl apply -f deploy/samples/gpuinstance.yaml',
    'kubectl get gpuinstances,gpupools',
    'kubectl delete -f deploy/samples/gpuinstance.yaml',
    '',
  ];
}

/** Lines for a container of the real node; the simulated nodes have none. */
function withSsh(state: string, offers: readonly TourOffer[], image: string): string[] {
  const offer = offers.find(({ simulated, available }) => !simulated && available > 0);
  if (offer === undefined) return [];
  const key = quoteWord(join(state, 'tour_key'));
  return [
    '# rent a real container, run a command in it over SSH, and look at its log',
    `[ -f ${key} ] || ssh-keygen -q -t ed25519 -N '' -f ${key}`,
    `berth ssh-keys add ${quoteWord(join(state, 'tour_key.pub'))} --name tour`,
    `ID=$(berth rent --offer ${offer.id} --name shell --image ${image} --yes); echo "$ID"`,
    `berth ssh -i ${key} "$ID" 'hostname; env | sort'`,
    'berth logs "$ID"',
    'berth rm "$ID" --yes',
    '',
  ];
}
